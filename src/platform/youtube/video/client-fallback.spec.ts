import { describe, expect, it } from '@jest/globals';
import { concludeFailure, type Evidence, isUnavailable, stepAfter, verdictOf } from './client-fallback.js';
import type { YoutubeClient } from '../../../config/environment.js';

describe('stepAfter', () => {
  it.each(['no-captions', 'unavailable', 'age-restricted'] as const)(
    '%s does not undo that another client has listed tracks',
    (kind) => {
      expect(stepAfter(kind, true).code).toBeUndefined();
      const { evidence = 'refused' } = stepAfter(kind, true);
      for (const seen of ['token-required', 'enforced', 'timeout', 'failure', 'unreached'] as const)
        expect(concludeFailure([seen, evidence])).toBe(concludeFailure([seen]));
    },
  );
});

describe('concludeFailure', () => {
  const refusals = ['refused', 'egress-refused', 'token-required', 'enforced'] as const;
  const all: Evidence[] = [
    ...refusals,
    ...(['timeout', 'failure', 'unreached', 'client-retired', 'unplayable', 'unavailable'] as const),
  ];

  it.each<Evidence>(refusals)('%s on any client is a block, regardless of the other results', (kind) => {
    for (const other of all) {
      expect(concludeFailure([other, kind])).toBe('upstream_blocked');
      expect(concludeFailure([kind, other])).toBe('upstream_blocked');
    }
  });

  it.each<[Evidence[], string]>([
    [['token-required'], 'upstream_blocked'],
    [['unplayable', 'unavailable'], 'video_unavailable'],
    [['unplayable', 'failure'], 'upstream_failure'],
    [['unreached', 'unplayable'], 'upstream_failure'],
    [['client-retired', 'unavailable', 'client-retired'], 'upstream_failure'],
    [['unplayable', 'timeout', 'failure'], 'upstream_timeout'],
    [[], 'upstream_failure'],
  ])('%j is %s: an unavailable video only when every client reports it', (evidence, code) => {
    expect(concludeFailure(evidence)).toBe(code);
  });
});

describe('isUnavailable', () => {
  const all: YoutubeClient[] = ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'];

  it.each<[YoutubeClient[], 'unplayable' | 'unavailable', YoutubeClient[], boolean]>([
    [[], 'unavailable', all, false],
    [['ANDROID'], 'unavailable', all, false],
    [['ANDROID', 'IOS'], 'unavailable', all, true],
    [['VISIONOS', 'ANDROID'], 'unavailable', all, true],
    // They have one version.
    [['ANDROID', 'ANDROID_REEL'], 'unavailable', all, false],
    [['ANDROID', 'ANDROID_REEL', 'IOS'], 'unavailable', all, true],
    // Both refuse videos made for kids.
    [['VISIONOS', 'ANDROID_VR'], 'unavailable', all, false],
    [['VISIONOS', 'ANDROID_VR', 'ANDROID_REEL'], 'unavailable', all, true],
    [['VISIONOS', 'ANDROID', 'IOS'], 'unavailable', [], false],
    [['VISIONOS', 'ANDROID'], 'unavailable', ['VISIONOS'], true],
    [['VISIONOS', 'ANDROID'], 'unavailable', ['ANDROID'], true],
    [['VISIONOS', 'ANDROID'], 'unavailable', ['IOS'], false],
    // VISIONOS reports a video made for kids so, and a version of ANDROID that is not served reports any video so.
    [['VISIONOS', 'ANDROID'], 'unplayable', ['VISIONOS'], false],
    [['VISIONOS', 'ANDROID'], 'unplayable', ['ANDROID'], true],
  ])('%j reporting it as %s, while %j are served: %s', (clients, kind, served, unavailable) => {
    const findings = clients.map((client) => ({ client, kind }));
    expect(isUnavailable({ findings, sawTracks: false }, (client) => served.includes(client))).toBe(unavailable);
  });

  it('is not certain when a client was refused or has listed tracks, but is when one failed', () => {
    const after = (first: Evidence, sawTracks: boolean) => {
      const kinds: Evidence[] = [first, 'unavailable', 'unplayable'];
      const findings = kinds.map((kind, index) => ({ client: all[index] ?? null, kind }));
      return isUnavailable({ findings, sawTracks }, () => true);
    };
    for (const kind of ['refused', 'egress-refused'] as const) expect(after(kind, false)).toBe(false);
    for (const kind of ['timeout', 'failure', 'unreached', 'client-retired', 'token-required'] as const) {
      expect(after(kind, false)).toBe(true);
      expect(after(kind, true)).toBe(false);
    }
  });
});

describe('verdictOf', () => {
  it.each<[Evidence[], boolean, string]>([
    [['refused', 'timeout'], true, 'refused'],
    [['egress-refused'], false, 'refused'],
    [['token-required', 'enforced'], true, 'withheld'],
    [['token-required', 'token-required'], true, 'nothing'],
    [['unplayable', 'failure'], false, 'answered'],
    [['failure'], true, 'answered'],
    [['unreached', 'unreached'], false, 'unreached'],
    [['unreached', 'timeout'], false, 'nothing'],
    [[], false, 'nothing'],
  ])('of %j after tracks were listed (%s) is %s', (evidence, sawTracks, verdict) => {
    expect(verdictOf(evidence, sawTracks)).toBe(verdict);
  });
});
