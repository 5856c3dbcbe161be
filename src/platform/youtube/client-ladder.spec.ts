import { describe, expect, it } from '@jest/globals';
import { NO_DETAILS } from '../../domain/transcript.js';
import { conclude, type Evidence, evidenceOf, stepAfter } from './client-ladder.js';
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

  it('a client that sees no captions does not undo that another one has seen them', () => {
    expect(stepAfter({ kind: 'no-captions', details }, ['withheld'])).toEqual({ go: 'next', evidence: 'withheld' });
  });

  it('a clear answer after a bot check on another client counts', () => {
    expect(stepAfter({ kind: 'no-captions', details }, ['refused'])).toEqual({
      go: 'stop',
      code: 'transcript_unavailable',
    });
  });
});

describe('conclude', () => {
  const all: Evidence[] = ['refused', 'exit-refused', 'withheld', 'timeout', 'failure', 'unreached', 'unplayable'];

  it.each<Evidence>(['refused', 'exit-refused', 'withheld'])(
    '%s on any client is told as a block, whatever else happened',
    (kind) => {
      for (const other of all) {
        expect(conclude([other, kind])).toBe('upstream_blocked');
        expect(conclude([kind, other])).toBe('upstream_blocked');
      }
    },
  );

  it('never says that there are no captions', () => {
    for (const one of all) for (const other of all) expect(conclude([one, other])).not.toBe('transcript_unavailable');
  });

  it('says that a video is unavailable only when every client said so', () => {
    expect(conclude(['unplayable', 'unplayable'])).toBe('video_unavailable');
    expect(conclude(['unplayable', 'failure'])).toBe('upstream_failure');
    expect(conclude(['unplayable', 'timeout', 'failure'])).toBe('upstream_timeout');
    expect(conclude([])).toBe('upstream_failure');
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
