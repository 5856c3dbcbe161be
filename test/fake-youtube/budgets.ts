import { createHash } from 'node:crypto';
import type { FaultKind } from './faults/fault-registry.js';
import type { Incoming, RequestKind } from './incoming-request.js';

/** How many requests of a kind an address may send: a token bucket. */
interface Budget {
  burst: number;
  perMinute: number;
  /** How long the address is refused after it exceeded the budget. */
  blockSeconds: number;
}

/** What the platform allows each address. */
export interface BudgetSettings {
  /** Player and reel requests; those above the budget get a bot check. */
  player: Budget;
  /** Caption requests; those above the budget get 429. */
  timedtext: Budget;
  /** Names, lists and channels, without the feed; those above the budget get 429. Null: anything. */
  list: Budget | null;
  /** How much each request during a block prolongs it. */
  penaltySeconds: number;
  /** The longest remaining time of a block. */
  blockSecondsMax: number;
  /** Share of addresses that are always refused, 0 to 1. The same addresses in each run. */
  badShare: number;
}

/** As users report: 300 videos an hour, then up to an hour of refusals; 60 texts in five minutes, then 429; no limit of lists. */
export const REPORTED_BUDGETS: BudgetSettings = {
  player: { burst: 300, perMinute: 5, blockSeconds: 1_800 },
  timedtext: { burst: 60, perMinute: 12, blockSeconds: 300 },
  list: null,
  penaltySeconds: 5,
  blockSecondsMax: 3_600,
  badShare: 0,
};

type Use = 'player' | 'timedtext' | 'list';
const USES: Partial<Record<RequestKind, Use>> = {
  player: 'player',
  reel: 'player',
  timedtext: 'timedtext',
  resolve: 'list',
  'browse-uploads': 'list',
  'browse-shorts': 'list',
  'browse-playlist': 'list',
  'browse-channel': 'list',
  'browse-continuation': 'list',
};
const REFUSALS = { player: 'bot-check-renewed', timedtext: '429', list: '429' } as const satisfies Record<
  Use,
  FaultKind
>;

interface Account {
  tokens: number;
  refilledAtMs: number;
  blockedUntilMs: number;
}

/** Counts the requests of each address, and refuses those above the budgets. */
export class Budgets {
  private readonly accounts = new Map<string, Account>();

  /** @param now milliseconds */
  constructor(private readonly now: () => number) {}

  /** The refusal of a request, if it is above the budgets. */
  refuse(settings: BudgetSettings | null, { kind, egress }: Pick<Incoming, 'kind' | 'egress'>): FaultKind | undefined {
    const use = USES[kind];
    const budget = use && settings?.[use];
    if (!budget) return undefined;
    if (isBad(egress, settings.badShare)) return REFUSALS[use];
    const nowMs = this.now();
    const account = this.account(`${use} ${egress}`, budget.burst, nowMs);
    if (nowMs < account.blockedUntilMs) {
      const longestMs = nowMs + settings.blockSecondsMax * 1_000;
      account.blockedUntilMs = Math.min(longestMs, account.blockedUntilMs + settings.penaltySeconds * 1_000);
      return REFUSALS[use];
    }
    const { burst, perMinute, blockSeconds } = budget;
    const refill = ((nowMs - account.refilledAtMs) / 60_000) * perMinute;
    account.tokens = Math.min(burst, account.tokens + refill);
    account.refilledAtMs = nowMs;
    if (account.tokens >= 1) {
      account.tokens -= 1;
      return undefined;
    }
    account.blockedUntilMs = nowMs + blockSeconds * 1_000;
    return REFUSALS[use];
  }

  /** Forgets all requests and blocks. */
  clear(): void {
    this.accounts.clear();
  }

  private account(key: string, burst: number, nowMs: number): Account {
    const account = this.accounts.get(key) ?? { tokens: burst, refilledAtMs: nowMs, blockedUntilMs: -Infinity };
    this.accounts.set(key, account);
    return account;
  }
}

/** Whether an address belongs to the share that is always refused. */
export function isBad(egress: string, badShare: number): boolean {
  if (badShare === 0) return false;
  return createHash('sha256').update(egress).digest().readUInt32BE() / 2 ** 32 < badShare;
}
