import { describe, expect, it } from '@jest/globals';
import { REPORTED_BUDGETS } from './budgets.js';
import { readCommandLine } from './command-line.js';

describe('the command line', () => {
  it('reads every option', () => {
    const given =
      '--port 4000 --latency-ms 50 --playlist-shape old --ignore-fields VISIONOS --consent --visitor-data --player-budget 30/2.5 --bad-share 0.3 --time-scale 60 --fault 429=0.1@player --fault hang';
    expect(readCommandLine(given.split(' '))).toEqual({
      port: 4_000,
      visitorDataRequired: true,
      budgets: {
        ...REPORTED_BUDGETS,
        player: { ...REPORTED_BUDGETS.player, burst: 30, perMinute: 2.5 },
        badShare: 0.3,
      },
      timeScale: 60,
      latencyMs: 50,
      seed: 1,
      playlistShape: 'old',
      fieldsIgnored: ['VISIONOS'],
      consentRequired: true,
      faults: [{ kind: '429', rate: 0.1, match: { kind: 'player' } }, { kind: 'hang' }],
    });
  });

  it('prints only the help for --help', () => {
    expect(readCommandLine(['--help'])).toBeUndefined();
  });

  it.each([
    ['--port x', /^--port must be a whole number from 0 to 65535, not x$/],
    ['--port 70000', /^--port must be/],
    ['--latency-ms 1.5', /^--latency-ms must be/],
    ['--playlist-shape round', /^--playlist-shape must be one of old, new$/],
    ['--ignore-fields TV', /^--ignore-fields must be one of .*, not TV$/],
    ['--fault rain', /^A fault must be one of 429, /],
    ['--fault 429=2', /^A rate must be from 0 to 1$/],
    ['--fault 429@nothing', /^The request kind after @ must be one of /],
    ['--fault =1', /^A fault is written kind/],
    ['--unknown', /--unknown/],
    ['extra', /extra/],
  ])('reports in one line what is wrong with %s', (given, message) => {
    expect(() => readCommandLine(given.split(' '))).toThrow(message);
    expect(() => readCommandLine(given.split(' '))).toThrow(/^[^\n]+$/);
  });
});
