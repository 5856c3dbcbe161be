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
      for (const seen of ['gated', 'enforced'] as const) {
        const step = stepAfter({ kind, details }, [seen]);
        expect(step.go).toBe('next');
        expect(concludeFailure([seen, ...(step.go === 'next' ? [step.evidence] : [])])).toBe('upstream_blocked');
      }
    },
  );

  it('a clear answer after a bot check on another client counts', () => {
    expect(stepAfter({ kind: 'no-captions', details }, ['refused'])).toEqual({
      go: 'stop',
      code: 'transcript_unavailable',
    });
  });
});

describe('conclude', () => {
  const all: Evidence[] = [
    ...(['refused', 'exit-refused', 'gated', 'enforced'] as const),
    ...(['timeout', 'failure', 'unreached', 'unplayable'] as const),
  ];

  it.each<Evidence>(['refused', 'exit-refused', 'gated', 'enforced'])(
    '%s on any client is told as a block, whatever else happened',
    (kind) => {
      for (const other of all) {
        expect(concludeFailure([other, kind])).toBe('upstream_blocked');
        expect(concludeFailure([kind, other])).toBe('upstream_blocked');
      }
    },
  );

  it('never says that there are no captions', () => {
    for (const one of all)
      for (const other of all) expect(concludeFailure([one, other])).not.toBe('transcript_unavailable');
  });

  it('says that a video is unavailable only when every client said so', () => {
    expect(concludeFailure(['unplayable', 'unplayable'])).toBe('video_unavailable');
    expect(concludeFailure(['unplayable', 'failure'])).toBe('upstream_failure');
    expect(concludeFailure(['unplayable', 'timeout', 'failure'])).toBe('upstream_timeout');
    expect(concludeFailure([])).toBe('upstream_failure');
  });
});

describe('findingOf', () => {
  it.each<[Evidence[], boolean, string]>([
    [['refused', 'timeout'], true, 'refused'],
    [['exit-refused'], false, 'refused'],
    [['gated', 'enforced'], true, 'withheld'],
    [['gated', 'gated'], true, 'nothing'],
    [['unplayable', 'failure'], true, 'answered'],
    [['unreached', 'unreached'], false, 'unreached'],
    [['unreached', 'timeout'], false, 'nothing'],
    [[], false, 'nothing'],
  ])('%j says about the exit: %s, %s', (evidence, succeeded, verdict) => {
    expect(verdictOf(evidence, succeeded)).toBe(verdict);
  });
});

describe('evidenceOf', () => {
  it('a page or a 429 refuses the exit, an empty answer the client', () => {
    const block = { kind: 'blocked', retryAfterSeconds: null } as const;
    expect(evidenceOf({ ...block, reason: 'captcha' })).toBe('exit-refused');
    expect(evidenceOf({ ...block, reason: 'consent' })).toBe('exit-refused');
    expect(evidenceOf({ ...block, reason: 'too-many-requests' })).toBe('exit-refused');
    expect(evidenceOf({ ...block, reason: 'empty-body' })).toBe('refused');
  });
});
