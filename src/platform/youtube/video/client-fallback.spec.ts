import { describe, expect, it } from '@jest/globals';
import { NO_DETAILS } from '../../../domain/transcript.js';
import { concludeFailure, type Evidence, evidenceOf, verdictOf, stepAfter } from './client-fallback.js';
import type { PlayerReading } from './player-response.js';

const details = NO_DETAILS;

describe('stepAfter', () => {
  it.each([
    ['no-captions', 'transcript_unavailable'],
    ['private', 'video_private'],
    ['members-only', 'video_members_only'],
    ['age-restricted', 'video_age_restricted'],
    ['unavailable', 'video_unavailable'],
    ['live', 'video_live'],
    ['upcoming', 'video_not_live_yet'],
  ] as const)('%s ends the search with %s', (kind, code) => {
    expect(stepAfter({ kind, details }, [])).toEqual({ go: 'stop', code });
  });

  it.each<PlayerReading>([
    { kind: 'bot-check' },
    { kind: 'other-video' },
    { kind: 'unplayable', reason: 'Not here.', details },
    { kind: 'unknown-status', status: 'NEW', reason: 'Who knows.', details },
  ])('$kind leads to the next client', (reading) => {
    expect(stepAfter(reading, []).go).toBe('next');
  });

  it.each(['no-captions', 'unavailable', 'age-restricted'] as const)(
    '%s does not undo that another client has listed tracks',
    (kind) => {
      for (const seen of ['token-required', 'enforced'] as const) {
        const step = stepAfter({ kind, details }, [seen]);
        expect(step.go).toBe('next');
        expect(concludeFailure([seen, ...(step.go === 'next' ? [step.evidence] : [])])).toBe('upstream_blocked');
      }
    },
  );

  it('uses a clear response after a bot check on another client', () => {
    expect(stepAfter({ kind: 'no-captions', details }, ['refused'])).toEqual({
      go: 'stop',
      code: 'transcript_unavailable',
    });
  });
});

describe('concludeFailure', () => {
  const all: Evidence[] = [
    ...(['refused', 'egress-refused', 'token-required', 'enforced'] as const),
    ...(['timeout', 'failure', 'unreached', 'unplayable'] as const),
  ];

  it.each<Evidence>(['refused', 'egress-refused', 'token-required', 'enforced'])(
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
    expect(concludeFailure(['unplayable', 'unplayable'])).toBe('video_unavailable');
    expect(concludeFailure(['unplayable', 'failure'])).toBe('upstream_failure');
    expect(concludeFailure(['unplayable', 'timeout', 'failure'])).toBe('upstream_timeout');
    expect(concludeFailure([])).toBe('upstream_failure');
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

describe('evidenceOf', () => {
  it('attributes a refusal page or a 429 to the egress, and an empty response to the client', () => {
    const block = { kind: 'blocked', retryAfterSeconds: null } as const;
    expect(evidenceOf({ ...block, reason: 'captcha' })).toBe('egress-refused');
    expect(evidenceOf({ ...block, reason: 'consent' })).toBe('egress-refused');
    expect(evidenceOf({ ...block, reason: 'too-many-requests' })).toBe('egress-refused');
    expect(evidenceOf({ ...block, reason: 'empty-body' })).toBe('refused');
  });
});
