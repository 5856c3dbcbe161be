import { describe, expect, it } from '@jest/globals';
import type { Channel } from '../../domain/transcript.js';
import { failureOf } from './check.js';

const DAY = 86_400;
const CHANNEL: Channel = { id: 'UC', name: 'Tidewater', handle: null };

describe('a check that has read nothing', () => {
  const failure = (
    type: 'channel_not_found' | 'playlist_not_found' | 'blocked' | 'failed',
    { header = CHANNEL, unreadDays = 0 }: { header?: Channel | null; unreadDays?: number } = {},
  ) => {
    const source = { header, setbacks: 1, unreadSeconds: unreadDays * DAY, reason: null };
    return failureOf(source, type === 'failed' ? { type, restartList: false } : { type });
  };

  it('is tried again after growing pauses', () => {
    const again = { delaySeconds: 60, setbacks: 2, pauses: false };
    expect(failure('channel_not_found')).toMatchObject({ ...again, reason: 'channel_not_found' });
    expect(failure('blocked')).toMatchObject({ ...again, reason: 'upstream_blocked' });
    expect(failure('failed')).toMatchObject({ ...again, reason: null });
  });

  it.each([
    [{ type: 'busy', seconds: 40 } as const, { delaySeconds: 40, restarts: false }],
    [{ type: 'stopped', restartList: true } as const, { delaySeconds: 0, restarts: true }],
  ])('is no set-back when it was not sent, however long that takes: %j', (outcome, expected) => {
    const source = { header: CHANNEL, setbacks: 1, unreadSeconds: 4 * DAY, reason: 'list_incomplete' as const };
    const stays = { reason: 'list_incomplete', setbacks: 1, pauses: false };
    expect(failureOf(source, outcome)).toEqual({ ...stays, ...expected });
  });

  it('pauses the subscriptions of a list that was never found, or not read for three days, and is tried again daily', () => {
    const paused = { pauses: true, delaySeconds: DAY };
    for (const type of ['channel_not_found', 'playlist_not_found'] as const) {
      expect(failure(type, { header: null })).toMatchObject({ ...paused, reason: type });
      expect(failure(type, { unreadDays: 3 })).toMatchObject({ ...paused, reason: type });
    }
    expect(failure('blocked', { header: null })).toMatchObject({ pauses: false });
    for (const type of ['blocked', 'failed'] as const)
      expect(failure(type, { unreadDays: 3 })).toMatchObject({ ...paused, reason: 'upstream_blocked' });
  });
});
