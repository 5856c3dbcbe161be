import { describe, expect, it } from '@jest/globals';
import { ConnectionCalls, PendingMessages } from './connection-calls.js';

describe('ConnectionCalls', () => {
  it('ends what runs when the connection closes, and nothing that has ended before', () => {
    const calls = new ConnectionCalls(new PendingMessages());
    const disconnected: string[] = [];
    calls.begin(() => disconnected.push('running'));
    calls.begin(() => disconnected.push('ended')).ended();
    calls.close();
    calls.close();
    expect(disconnected).toEqual(['running']);
  });

  it('ends a message at once that begins when the connection has closed', () => {
    const calls = new ConnectionCalls(new PendingMessages());
    calls.close();
    let left = false;
    calls.begin(() => (left = true));
    expect(left).toBe(true);
    expect(calls.isIdle).toBe(true);
  });

  it('counts a message as pending until it has passed the guards or ended, once', () => {
    const all = new PendingMessages();
    let rooms = 0;
    const calls = new ConnectionCalls(all, () => (rooms += 1));
    const others = new ConnectionCalls(all);
    const slots = [1, 2, 3].map(() => calls.begin(() => undefined));
    others.begin(() => undefined);
    expect([calls.pendingCount, all.count]).toEqual([3, 4]);
    slots[0]?.passed();
    slots[0]?.ended();
    slots[1]?.ended();
    slots[1]?.ended();
    expect([calls.pendingCount, all.count, rooms]).toEqual([1, 2, 2]);
    expect(calls.isIdle).toBe(false);
    slots[2]?.ended();
    expect(calls.isIdle).toBe(true);
  });
});
