import { describe, expect, it } from '@jest/globals';
import { ConnectionCalls, PendingMessages } from './message-transport.js';

describe('ConnectionCalls', () => {
  it('disconnects running messages, and no ended ones, when the connection closes', () => {
    const calls = new ConnectionCalls(new PendingMessages());
    const disconnected: string[] = [];
    calls.begin(() => disconnected.push('running'));
    calls.begin(() => disconnected.push('ended')).ended();
    calls.close();
    calls.close();
    expect(disconnected).toEqual(['running']);
  });

  it('disconnects a message at once when the connection is already closed', () => {
    const calls = new ConnectionCalls(new PendingMessages());
    calls.close();
    let disconnected = false;
    calls.begin(() => (disconnected = true));
    expect(disconnected).toBe(true);
    expect(calls.isIdle).toBe(true);
  });

  it('counts a message as pending, once, until it has passed the guards or ended', () => {
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
