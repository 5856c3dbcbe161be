import { describe, expect, it } from '@jest/globals';
import { Budgets, type BudgetSettings, isBad } from './budgets.js';
import type { RequestKind } from './incoming-request.js';

const PLAYER = { kind: 'player', egress: '127.0.0.2' } as const;
const TEXT = { kind: 'timedtext', egress: '127.0.0.2' } as const;
const SETTINGS: BudgetSettings = {
  player: { burst: 3, perMinute: 2, blockSeconds: 120 },
  timedtext: { burst: 2, perMinute: 1, blockSeconds: 120 },
  list: null,
  penaltySeconds: 60,
  blockSecondsMax: 240,
  badShare: 0,
};

function budgetsAt(): {
  budgets: Budgets;
  wait: (ms: number) => void;
  refused: (request?: typeof PLAYER | typeof TEXT) => boolean;
} {
  let nowMs = 0;
  const budgets = new Budgets(() => nowMs);
  return {
    budgets,
    wait: (ms) => (nowMs += ms),
    refused: (request = PLAYER) => budgets.refuse(SETTINGS, request) !== undefined,
  };
}

describe('the budget of an address', () => {
  it('allows a burst, and then as many requests as it is refilled', () => {
    const { wait, refused } = budgetsAt();
    expect([refused(), refused(), refused()]).toEqual([false, false, false]);
    wait(30_000);
    expect([refused(), refused()]).toEqual([false, true]);
  });

  it('blocks the address after it was exceeded, and longer when it is asked during the block', () => {
    const { wait, refused } = budgetsAt();
    while (!refused());
    wait(119_000);
    expect(refused()).toBe(true);
    wait(60_000);
    expect(refused()).toBe(true);
    wait(62_000);
    expect(refused()).toBe(false);
  });

  it('is counted for players and texts by themselves, and for each address', () => {
    const { budgets, refused } = budgetsAt();
    while (!refused());
    expect(refused(TEXT)).toBe(false);
    expect(budgets.refuse(SETTINGS, { ...PLAYER, egress: '127.0.0.3' })).toBeUndefined();
    expect(budgets.refuse(SETTINGS, { kind: 'browse-uploads', egress: PLAYER.egress })).toBeUndefined();
    expect(budgets.refuse(SETTINGS, PLAYER)).toBe('bot-check-renewed');
    budgets.clear();
    expect(refused()).toBe(false);
  });

  it('is one for names, lists and channels, and none unless it is given', () => {
    const { budgets } = budgetsAt();
    const refusal = (kind: RequestKind, list: BudgetSettings['list']) =>
      budgets.refuse({ ...SETTINGS, list }, { kind, egress: PLAYER.egress });
    const kinds = ['resolve', 'browse-uploads', 'browse-continuation'] as const;
    expect(kinds.map((kind) => refusal(kind, null))).toEqual([undefined, undefined, undefined]);
    const list = { burst: 2, perMinute: 60, blockSeconds: 60 };
    expect(kinds.map((kind) => refusal(kind, list))).toEqual([undefined, undefined, '429']);
    expect(refusal('feed', list)).toBeUndefined();
    expect(refusal('player', list)).toBeUndefined();
  });
});

it('the share of bad addresses is as set, and the addresses are the same each time', () => {
  const addresses = Array.from({ length: 2_000 }, (_, index) => `127.16.${index >> 8}.${index & 255}`);
  const bad = addresses.filter((address) => isBad(address, 0.3));
  expect(bad.length / addresses.length).toBeCloseTo(0.3, 1);
  expect(bad.every((address) => isBad(address, 0.6))).toBe(true);
});
