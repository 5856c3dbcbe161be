import { describe, expect, it } from '@jest/globals';
import { REPORTED_BUDGETS } from './budgets.js';
import { readCommandLine } from './command-line.js';

describe('the command line', () => {
  it('reads every option', () => {
    const settings = {
      ...{ latencyMs: 50, playlistShape: 'old', fieldsIgnored: ['VISIONOS'], visitorDataRequired: true },
      budgets: { player: { burst: 30, perMinute: 2.5 }, badShare: 0.3 },
    };
    const given = '--port 4000 --fault 429=0.1@player --fault hang --settings'.split(' ');
    expect(readCommandLine([...given, JSON.stringify(settings)])).toEqual({
      ...{ port: 4_000, seed: 1 },
      ...settings,
      budgets: {
        ...REPORTED_BUDGETS,
        player: { ...REPORTED_BUDGETS.player, burst: 30, perMinute: 2.5 },
        badShare: 0.3,
      },
      faults: [{ kind: '429', rate: 0.1, match: { kind: 'player' } }, { kind: 'hang' }],
    });
  });

  it('prints only the help for --help', () => {
    expect(readCommandLine(['--help'])).toBeUndefined();
  });

  it.each([
    ['--port x', /^--port must be a whole number from 0 to 65535, not x$/],
    ['--port 70000', /^--port must be/],
    ['--settings x', /^The text is not JSON$/],
    ['--settings {"latencyMs":-1}', /^settings\.latencyMs: /],
    ['--settings {"playlistShape":"round"}', /^settings\.playlistShape: .*"old"\|"new"/],
    ['--settings {"rain":1}', /^settings: .*"rain"/],
    ['--fault rain', /^settings\.0\.kind: .*"429"/],
    ['--fault 429=2', /^settings\.0\.rate: /],
    ['--fault 429@nothing', /^settings\.0\.match\.kind: /],
    ['--fault =1', /^A fault is written kind/],
    ['--unknown', /--unknown/],
    ['extra', /extra/],
  ])('reports in one line what is wrong with %s', (given, message) => {
    expect(() => readCommandLine(given.split(' '))).toThrow(message);
    expect(() => readCommandLine(given.split(' '))).toThrow(/^[^\n]+$/);
  });
});
