import { describe, expect, it } from '@jest/globals';
import {
  concludeFailure,
  type Evidence,
  evidenceAbout,
  isUnavailable,
  stepAfter,
  type UnavailableReport,
  verdictOf,
} from './client-fallback.js';
import type { YoutubeClient } from '../../../config/environment.js';

describe('stepAfter', () => {
  it.each(['no-captions', 'unavailable', 'age-restricted'] as const)(
    '%s does not undo that another client has listed tracks',
    (kind) => {
      const codes = {
        'token-required': 'upstream_blocked',
        enforced: 'upstream_blocked',
        timeout: 'upstream_timeout',
        failure: 'upstream_failure',
        unreached: 'upstream_failure',
      } as const;
      const { code, evidence = 'refused' } = stepAfter(kind, true);
      expect(code).toBeUndefined();
      for (const [seen, worse] of Object.entries(codes) as [Evidence, string][])
        expect(concludeFailure([seen, evidence])).toBe(worse);
    },
  );
});

describe('concludeFailure', () => {
  const all: Evidence[] = [
    ...(['refused', 'egress-refused', 'token-required', 'enforced', 'token-refused'] as const),
    ...(['timeout', 'failure', 'unreached', 'client-retired', 'unplayable', 'unavailable'] as const),
  ];

  it.each<Evidence>(['refused', 'egress-refused', 'token-required', 'enforced', 'token-refused'])(
    '%s on any client is reported as a block, regardless of the other results',
    (kind) => {
      for (const other of all) {
        expect(concludeFailure([other, kind])).toBe('upstream_blocked');
        expect(concludeFailure([kind, other])).toBe('upstream_blocked');
      }
    },
  );

  it('never reports missing captions', () => {
    for (const one of all)
      for (const other of all) expect(concludeFailure([one, other])).not.toBe('transcript_unavailable');
  });

  it('reports an unavailable video only when every client reports it', () => {
    expect(concludeFailure(['unplayable', 'unavailable'])).toBe('video_unavailable');
    expect(concludeFailure(['unplayable', 'failure'])).toBe('upstream_failure');
    expect(concludeFailure(['client-retired', 'unavailable', 'client-retired'])).toBe('upstream_failure');
    expect(concludeFailure(['client-retired', 'client-retired'])).toBe('upstream_failure');
    expect(concludeFailure(['unplayable', 'timeout', 'failure'])).toBe('upstream_timeout');
    expect(concludeFailure([])).toBe('upstream_failure');
  });
});

describe('isUnavailable', () => {
  const reports = (
    clients: readonly YoutubeClient[],
    served: readonly YoutubeClient[],
    kind: UnavailableReport['kind'] = 'unavailable',
  ) => clients.map((client) => ({ client, kind, served: served.includes(client) }));

  it.each<[YoutubeClient[], boolean]>([
    [[], false],
    [['ANDROID'], false],
    [['ANDROID', 'IOS'], true],
    [['VISIONOS', 'ANDROID'], true],
    // They have one version.
    [['ANDROID', 'ANDROID_REEL'], false],
    [['ANDROID', 'ANDROID_REEL', 'IOS'], true],
    // Both refuse videos made for kids.
    [['VISIONOS', 'ANDROID_VR'], false],
    [['VISIONOS', 'ANDROID_VR', 'ANDROID_REEL'], true],
  ])('%j reporting it, all of them served: %s', (clients, unavailable) => {
    const unavailableOn = reports(clients, clients);
    expect(isUnavailable({ unavailableOn, evidence: [], sawTracks: false })).toBe(unavailable);
  });

  it.each<[YoutubeClient[], YoutubeClient[], UnavailableReport['kind'], boolean]>([
    [['VISIONOS', 'ANDROID', 'IOS'], [], 'unavailable', false],
    [['VISIONOS', 'ANDROID'], ['VISIONOS'], 'unavailable', true],
    [['VISIONOS', 'ANDROID'], ['ANDROID'], 'unavailable', true],
    [['VISIONOS', 'ANDROID'], ['IOS'], 'unavailable', false],
    // VISIONOS reports a video made for kids so, and a version of ANDROID that is not served reports any video so.
    [['VISIONOS', 'ANDROID'], ['VISIONOS'], 'unplayable', false],
    [['VISIONOS', 'ANDROID'], ['ANDROID'], 'unplayable', true],
  ])('%j reporting it, of which %j were served recently, as %s: %s', (clients, served, kind, unavailable) => {
    const unavailableOn = reports(clients, served, kind);
    expect(isUnavailable({ unavailableOn, evidence: [], sawTracks: false })).toBe(unavailable);
  });

  it('is not certain when a client was refused or has listed tracks, but is when one failed', () => {
    const unavailableOn = reports(['ANDROID', 'IOS'], ['ANDROID']);
    const after = (kind: Evidence, sawTracks: boolean) =>
      isUnavailable({ unavailableOn, evidence: [kind, 'unavailable', 'unplayable'], sawTracks });
    for (const kind of ['refused', 'egress-refused'] as const) expect(after(kind, false)).toBe(false);
    for (const kind of ['timeout', 'failure', 'unreached', 'client-retired', 'token-refused'] as const) {
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
    [['unplayable', 'failure'], true, 'answered'],
    [['unreached', 'unreached'], false, 'unreached'],
    [['unreached', 'timeout'], false, 'nothing'],
    [[], false, 'nothing'],
  ])('%j with success %s has the verdict %s', (evidence, succeeded, verdict) => {
    expect(verdictOf(evidence, succeeded)).toBe(verdict);
  });
});

describe('evidenceAbout', () => {
  it('attributes a refusal of WEB to its token, and that of a page or an address to the egress', () => {
    expect(evidenceAbout('WEB', 'refused')).toBe('token-refused');
    expect(evidenceAbout('WEB', 'enforced')).toBe('token-required');
    expect(evidenceAbout('WEB', 'egress-refused')).toBe('egress-refused');
    expect(evidenceAbout('ANDROID', 'refused')).toBe('refused');
    expect(evidenceAbout('ANDROID', 'enforced')).toBe('enforced');
    expect(verdictOf(['token-refused', 'token-required'], true)).toBe('nothing');
  });
});
