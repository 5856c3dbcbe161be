import { describe, expect, it } from '@jest/globals';
import { YOUTUBE_CLIENTS, type YoutubeClient } from '../../../config/environment.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import {
  concludeFailure,
  doubtingApps,
  findingOf,
  type Finding,
  findingOfPlayer,
  type FindingKind,
  type FoundSoFar,
  isDoubt,
  isOfEgress,
  isRefusal,
  nextClient,
  nextStep,
  otherApps,
  type Step,
  unavailableAccordingTo,
} from './client-fallback.js';

const ALL: readonly FindingKind[] = [
  ...(['address-refused', 'refused', 'text-refused', 'token-required', 'busy', 'timeout', 'failure'] as const),
  ...(['unreached', 'unknown-status', 'client-retired', 'no-captions', 'unplayable', 'unavailable'] as const),
];
const APPS: readonly YoutubeClient[] = ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'];

/** Findings of the clients in their order. */
const findings = (...kinds: readonly FindingKind[]): Finding[] =>
  kinds.map((kind, index) => ({ client: APPS[index] ?? null, kind }));

/** The same finding of some clients. */
const all = (kind: FindingKind, ...clients: readonly YoutubeClient[]): Finding[] =>
  clients.map((client) => ({ client, kind }));

/** The clients that were not asked. */
const without = (...asked: readonly YoutubeClient[]) => APPS.filter((client) => !asked.includes(client));

describe('whom a finding concerns', () => {
  it.each<[string, (kind: FindingKind) => boolean, FindingKind[]]>([
    ['is in doubt', isDoubt, ['refused', 'text-refused', 'unknown-status', 'unplayable', 'unavailable']],
    ['is the egress', isOfEgress, ['timeout', 'unreached']],
    ['is the caller, who is refused', isRefusal, ['address-refused', 'refused', 'text-refused', 'token-required']],
  ])('%s', (_, matches, kinds) => {
    expect(ALL.filter(matches)).toEqual(kinds);
  });

  it.each<[FailedResponse | { kind: 'unparsable' }, FindingKind, FindingKind]>([
    [{ kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 1 }, 'address-refused', 'address-refused'],
    [{ kind: 'blocked', reason: 'captcha', retryAfterSeconds: null }, 'address-refused', 'address-refused'],
    [{ kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: 30 }, 'address-refused', 'address-refused'],
    [{ kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null }, 'refused', 'text-refused'],
    [{ kind: 'blocked', reason: 'empty-body', retryAfterSeconds: null }, 'refused', 'text-refused'],
    [{ kind: 'busy', retryAfterSeconds: 1 }, 'busy', 'busy'],
    [{ kind: 'timeout' }, 'timeout', 'timeout'],
    [{ kind: 'network', cause: null }, 'unreached', 'unreached'],
    [{ kind: 'foreign-page' }, 'unreached', 'unreached'],
    [{ kind: 'http-error', status: 502, media: 'html' }, 'unreached', 'unreached'],
    [{ kind: 'http-error', status: 500, media: 'json' }, 'failure', 'failure'],
    [{ kind: 'http-error', status: 400, media: 'json' }, 'client-retired', 'failure'],
    [{ kind: 'unreadable', expected: 'whole JSON' }, 'failure', 'failure'],
    [{ kind: 'unparsable' }, 'failure', 'failure'],
  ])('%j is %s for a player and %s for a text', (response, ofPlayer, ofText) => {
    expect([findingOf(response, 'player'), findingOf(response, 'captions')]).toEqual([ofPlayer, ofText]);
  });

  it('is one app when two clients of it report the same', () => {
    expect(doubtingApps(all('refused', 'VISIONOS', 'ANDROID_VR'))).toBe(1);
    expect(doubtingApps(all('unavailable', 'ANDROID', 'ANDROID_REEL', 'IOS'))).toBe(2);
    // Neither a failure nor what concerns all is a client's doubt.
    expect(doubtingApps([...all('failure', 'ANDROID', 'IOS'), { client: null, kind: 'refused' }])).toBe(0);
  });
});

describe('the finding of a player response', () => {
  it.each(['no-captions', 'unavailable', 'age-restricted', 'country-restricted'] as const)(
    '%s does not undo that another client has listed tracks',
    (problem) => {
      const kind = findingOfPlayer(problem, true);
      for (const seen of ['token-required', 'timeout', 'failure', 'unreached'] as const)
        expect(concludeFailure(findings(seen, kind))).toBe(concludeFailure(findings(seen)));
    },
  );

  it.each(['bot-check', 'session-refused', 'other-video', 'unknown-status', 'unplayable', 'unavailable'] as const)(
    '%s is a doubt and never final',
    (problem) => {
      expect(isDoubt(findingOfPlayer(problem, false))).toBe(true);
    },
  );
});

describe('the next step', () => {
  const NOTHING: FoundSoFar = {
    ...{ findings: [], remaining: APPS, sawTracks: false, webSkipped: false },
    ...{ doubt: 'none', isAlone: true, hasAlternative: false, session: null },
  };
  const DOUBTED = { doubt: 'new' } as const;
  const ask = (client: YoutubeClient): Step => ({ do: 'ask', client });
  const confirm = (kind: FindingKind, ...witnesses: YoutubeClient[]): Step => ({ do: 'confirm', kind, witnesses });
  const END: Step = { do: 'end' };
  const EXAMINE: Step = { do: 'examine' };
  const twice = all('refused', 'VISIONOS', 'ANDROID');
  const silent = all('no-captions', 'ANDROID', 'IOS');

  it.each<[string, Partial<FoundSoFar>, Step]>([
    ['nothing', {}, ask('VISIONOS')],
    ['a refused address', { findings: all('address-refused', 'VISIONOS') }, END],
    ['a busy egress', { findings: all('busy', 'VISIONOS') }, END],
    ['no response, with another egress', { findings: all('unreached', 'VISIONOS'), hasAlternative: true }, END],
    ['no response', { findings: all('unreached', 'VISIONOS'), remaining: ['IOS'] }, ask('IOS')],
    ['a fact', { findings: all('private', 'VISIONOS') }, confirm('private', 'VISIONOS')],
    ['a country', { findings: all('country-restricted', 'IOS') }, confirm('country-restricted', 'IOS')],
    [
      'no captions of one app',
      { findings: all('no-captions', 'ANDROID'), remaining: ['ANDROID_REEL', 'IOS'] },
      ask('IOS'),
    ],
    ['no captions of the only app', { findings: all('no-captions', 'ANDROID'), remaining: ['ANDROID_REEL'] }, END],
    ['no captions of two apps', { findings: silent }, confirm('no-captions', 'ANDROID', 'IOS')],
    ['no captions of two apps, with WEB', { findings: silent, remaining: ['VISIONOS', 'WEB'] }, ask('WEB')],
    ['no captions of two apps, without the token of WEB', { findings: silent, remaining: [], webSkipped: true }, END],
    ['no captions of WEB', { findings: all('no-captions', 'WEB') }, confirm('no-captions', 'WEB')],
    ['one refusal', { ...DOUBTED, findings: all('refused', 'VISIONOS'), remaining: ['ANDROID_VR', 'IOS'] }, ask('IOS')],
    ['one refusal beside another video', { ...DOUBTED, findings: all('refused', 'VISIONOS'), isAlone: false }, EXAMINE],
    ['two refusals', { ...DOUBTED, findings: twice }, EXAMINE],
    ['two refusals of which nothing was found out', { doubt: 'undecided', findings: twice }, END],
    ['two refusals of the video itself', { doubt: 'settled', findings: twice }, ask('IOS')],
    ['two refusals through a session', { ...DOUBTED, findings: twice, session: 2 }, END],
    ['two refusals through the third session', { ...DOUBTED, findings: twice, session: 3 }, EXAMINE],
    ['one "unavailable"', { ...DOUBTED, findings: all('unavailable', 'VISIONOS') }, ask('ANDROID_REEL')],
    [
      '"unavailable" of two apps',
      { ...DOUBTED, findings: all('unavailable', 'VISIONOS', 'ANDROID_REEL') },
      confirm('unavailable', 'ANDROID_REEL'),
    ],
    [
      '"unavailable" of two apps after tracks',
      { ...DOUBTED, findings: all('unavailable', 'VISIONOS', 'ANDROID_REEL'), sawTracks: true, remaining: ['IOS'] },
      ask('IOS'),
    ],
    [
      '"unavailable" of two apps while no control can be asked',
      { doubt: 'undecided', findings: all('unavailable', 'VISIONOS', 'ANDROID_REEL'), remaining: [] },
      END,
    ],
    ['all clients', { findings: all('failure', ...APPS), remaining: [] }, END],
  ])('after %s', (_, found, step) => {
    const asked = new Set(found.findings?.map(({ client }) => client));
    const remaining = APPS.filter((client) => !asked.has(client));
    expect(nextStep({ ...NOTHING, remaining, ...found })).toEqual(step);
  });
});

describe('concludeFailure', () => {
  it.each(ALL.filter(isRefusal))('%s on any client is a block, regardless of the other findings', (kind) => {
    for (const other of ALL) {
      expect(concludeFailure(findings(other, kind))).toBe('upstream_blocked');
      expect(concludeFailure(findings(kind, other))).toBe('upstream_blocked');
    }
  });

  it.each<[FindingKind[], string]>([
    [['unplayable', 'unavailable'], 'video_unavailable'],
    [['unplayable', 'failure'], 'upstream_failure'],
    [['unreached', 'unplayable'], 'upstream_failure'],
    [['unknown-status', 'unavailable'], 'upstream_failure'],
    [['client-retired', 'unavailable', 'client-retired'], 'upstream_failure'],
    [['unplayable', 'timeout', 'failure'], 'upstream_timeout'],
    [['timeout', 'busy'], 'upstream_busy'],
    [['no-captions', 'unavailable'], 'transcript_unavailable'],
    [['no-captions', 'failure'], 'upstream_failure'],
    [[], 'upstream_failure'],
  ])('%j is %s: an unavailable video only when every client reports it', (kinds, code) => {
    expect(concludeFailure(findings(...kinds))).toBe(code);
  });
});

describe('the next client', () => {
  it.each<[string, readonly YoutubeClient[], readonly Finding[], YoutubeClient | undefined]>([
    ['is the first one', APPS, [], 'VISIONOS'],
    ['is the next one after a failure', without('VISIONOS'), all('failure', 'VISIONOS'), 'ANDROID'],
    ['is another app after a refusal', ['ANDROID_VR', 'IOS'], all('refused', 'VISIONOS'), 'IOS'],
    ['is one of the same app when there is no other', ['ANDROID_VR'], all('refused', 'VISIONOS'), 'ANDROID_VR'],
    [
      'plays videos made for kids after "unavailable"',
      without('VISIONOS'),
      all('unavailable', 'VISIONOS'),
      'ANDROID_REEL',
    ],
    [
      'plays them after "unplayable" of all others, too',
      ['ANDROID_REEL', 'ANDROID_VR'],
      all('unplayable', 'VISIONOS', 'ANDROID', 'IOS'),
      'ANDROID_REEL',
    ],
    ['is ANDROID when there is no reel', ['IOS', 'ANDROID'], all('unavailable', 'VISIONOS'), 'ANDROID'],
    ['is WEB after "no captions"', ['IOS', 'WEB'], all('no-captions', 'ANDROID'), 'WEB'],
    ['is another app after "no captions" without WEB', ['ANDROID_REEL', 'IOS'], all('no-captions', 'ANDROID'), 'IOS'],
    ['is none after "no captions" of the only app', ['ANDROID_REEL'], all('no-captions', 'ANDROID'), undefined],
    ['is none when all were asked', [], all('failure', 'IOS'), undefined],
  ])('%s', (_, remaining, found, client) => {
    expect(nextClient(remaining, found)).toBe(client);
  });

  it('of each other app is the first one that is not doubted, and those that are not doubted come first', () => {
    const doubted =
      (...clients: YoutubeClient[]) =>
      (client: YoutubeClient) =>
        clients.includes(client);
    const given: YoutubeClient[] = ['ANDROID_VR', 'VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL'];
    expect(otherApps('VISIONOS', given, doubted())).toEqual(['ANDROID', 'IOS']);
    expect(otherApps('VISIONOS', given, doubted('ANDROID'))).toEqual(['IOS', 'ANDROID_REEL']);
    expect(otherApps('VISIONOS', given, doubted('ANDROID', 'ANDROID_REEL'))).toEqual(['IOS', 'ANDROID']);
    expect(otherApps('ANDROID', ['ANDROID_REEL'], doubted())).toEqual([]);
  });
});

describe('the client whose word decides that a video is unavailable', () => {
  const REEL: YoutubeClient = 'ANDROID_REEL';

  it.each<[YoutubeClient[], YoutubeClient[], YoutubeClient | null]>([
    [[], without(), null],
    [['ANDROID_REEL'], without('ANDROID_REEL'), null],
    // The reel was not asked, and plays what all the others refuse.
    [['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_VR'], [REEL], null],
    [['VISIONOS', 'ANDROID_REEL'], without('VISIONOS', 'ANDROID_REEL'), 'ANDROID_REEL'],
    [['IOS', 'ANDROID', 'ANDROID_REEL'], ['VISIONOS'], 'ANDROID_REEL'],
    // One app.
    [['ANDROID', 'ANDROID_REEL'], ['IOS'], null],
    [['VISIONOS', 'ANDROID_VR'], ['IOS'], null],
    // The reel is not configured, or did not bring a word.
    [['VISIONOS', 'ANDROID'], ['IOS'], 'ANDROID'],
    [['VISIONOS', 'IOS'], ['ANDROID'], null],
    [['VISIONOS', 'IOS'], [], 'IOS'],
  ])('of %j, while %j were not asked, is that of %s', (reporting, remaining, witness) => {
    for (const kind of ['unavailable', 'unplayable'] as const)
      expect(unavailableAccordingTo(all(kind, ...reporting), remaining)).toBe(witness);
  });

  it.each(ALL.filter(isRefusal))('is nobody’s after %s, of whatever client', (kind) => {
    for (const client of [...YOUTUBE_CLIENTS, null])
      expect(unavailableAccordingTo([...all('unavailable', 'VISIONOS', REEL), { client, kind }], [])).toBeNull();
  });

  it.each(['timeout', 'failure', 'unreached', 'client-retired', 'unknown-status'] as const)(
    'is not changed by %s of another client',
    (kind) => {
      const found = [...all(kind, 'ANDROID'), ...all('unavailable', 'VISIONOS', REEL)];
      expect(unavailableAccordingTo(found, ['IOS'])).toBe(REEL);
    },
  );
});
