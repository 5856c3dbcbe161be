import { setMaxListeners } from 'node:events';
import type { Registry } from 'prom-client';
import type { Environment } from '../../../config/environment.js';
import type { EgressState, EgressStates } from '../../egress-states.js';
import type { ReadingContext, Requester } from '../../video-platform.js';
import { countAttempts, exportEgressStates } from '../upstream-metrics.js';
import { Attempt, type AttemptEnd, EGRESS_USES, RetryBudget, type UseName } from './attempt.js';
import { ConfiguredEgress, type Egress, type Probes, type OpenEgress } from './egress.js';
import type { RequestScope } from './request-pipeline.js';
import type { RequestQueue } from './request-queue.js';

/** How many egresses one channel or video is attempted through. */
const EGRESSES_PER_TASK_MAX = 3;
/** How many sessions of a gateway: with 60 % of bad addresses, five would fail 8 % of the videos, and eight 2 %. */
const ATTEMPTS_MAX = 8;
/** This many refused sessions in a row mean that nearly all addresses of a gateway are refused. */
const SESSIONS_REFUSED_MAX = 100;

/** Of several attempts without a result, the one that is reported: what another attempt can cure soonest. */
const REPORTED_FIRST: readonly AttemptEnd[] = ['busy', 'refused', 'unreached', 'restricted'];

/** The result of one attempt through one egress, and what it means for the egress. */
export interface AttemptResult<T> {
  result: T;
  end: AttemptEnd;
}

interface TakenEgress extends OpenEgress {
  /** Whether another egress, or another session of this one, can be tried. */
  readonly hasAlternative: boolean;
}

/** A channel or video that is read, one attempt after another. */
interface Work<T> {
  readonly use: UseName;
  readonly subject: string;
  readonly context: ReadingContext;
  /** Of each attempt, or the budget that all attempts share. */
  readonly retries: number | RetryBudget;
  readonly attempt: (scope: RequestScope) => Promise<AttemptResult<T>>;
}

/** The egresses, in rotation: those that are refused or not reached are skipped while others are available. */
export class EgressPool implements EgressStates {
  private readonly members: readonly ConfiguredEgress[];
  private readonly ends: ReturnType<typeof countAttempts>;
  private turn = 0;

  /** @param now milliseconds of a monotonic clock */
  constructor(
    environment: Environment,
    registry: Registry,
    private readonly queue: RequestQueue,
    probes: Probes,
    now = () => performance.now(),
  ) {
    const proxies = environment.UPSTREAM_PROXY_URL ?? [null];
    this.members = proxies.map((proxyUrl, index) => {
      const name = proxyUrl === null ? 'direct' : `proxy-${index + 1}`;
      return new ConfiguredEgress(name, proxyUrl, environment, queue, probes, now);
    });
    exportEgressStates(registry, () => this.states());
    this.ends = countAttempts(
      registry,
      this.members.map(({ name }) => name),
    );
  }

  /**
   * Reads through one egress, and from the start through another when the first is refused, not reached, busy or in a country
   * where the video is not available: visitor data, player response and caption URL belong to the same egress.
   *
   * @returns the last result, preferring `busy` to `refused`, that to `unreached` and that to `restricted`; null when every
   *   egress is refused, or every one that is not in a country without the video
   */
  async read<T>({ use, subject, context, retries, attempt: read }: Work<T>): Promise<T | null> {
    // The videos of one call add up to a hundred listeners to its signal and remove them: not a leak.
    setMaxListeners(0, context.signal);
    const hasGateway = this.members.some(({ isGateway }) => isGateway);
    const attemptsMax = hasGateway ? ATTEMPTS_MAX : EGRESSES_PER_TASK_MAX;
    const tried: string[] = [];
    let best: AttemptResult<T> | null = null;
    // One in a country without the video does not count: all are tried that may be in another, as far as that ends.
    let elsewhere = 0;
    while (tried.length - elsewhere < attemptsMax && tried.length < ATTEMPTS_MAX) {
      context.signal.throwIfAborted();
      const taken = this.take(use, tried, context);
      if (!taken) {
        const isUntried = hasGateway || this.members.some(({ name }) => !tried.includes(name));
        if (best?.end === 'restricted' && isUntried) best = null;
        break;
      }
      const { egress, hasAlternative } = taken;
      const attempt = new Attempt(subject);
      const budget = typeof retries === 'number' ? new RetryBudget(retries) : retries;
      const attempts = tried.push(egress.name);
      try {
        const made = await read({ egress, attempt, context, budget, hasAlternative, attempts });
        this.recordEnd(egress, use, made.end);
        if (made.end === 'answered') return made.result;
        if (made.end === 'restricted') elsewhere += 1;
        // Of several countries the last one, after which no other was left.
        const isLast = made.end === 'restricted' && best?.end === 'restricted';
        if (best === null || isLast || rank(made) < rank(best)) best = made;
        // The one that can serve first was chosen; the others are busy for longer.
        if (made.end === 'busy') break;
      } finally {
        // Also after an exception: others wait for what the attempt holds.
        egress.uses[use].line.leave(attempt);
        taken.release();
      }
    }
    return best?.result ?? null;
  }

  /**
   * The next egress: of those that are not refused the one that can serve first. Null when all are refused. A control of what
   * may serve again is asked meanwhile; only when there is nothing else, the attempt waits for it.
   *
   * @param tried the names of earlier attempts at the same subject: each proxy is tried once, a gateway repeatedly
   */
  take(use: UseName, tried: readonly string[], requester: Requester): TakenEgress | null {
    for (const member of this.members) {
      void member.endPause(use);
      if (member.restsUntilMs !== null) void member.check();
    }
    const inTurn = [...this.members.slice(this.turn), ...this.members.slice(0, this.turn)];
    const lineOf = ({ uses }: ConfiguredEgress) => uses[use].line;
    const free = inTurn.filter(
      (member) => (member.isGateway || !tried.includes(member.name)) && lineOf(member).pauseRemainingMs === 0,
    );
    const ready = free.filter((member) => !lineOf(member).paused && member.restsUntilMs === null);
    // An egress that rests is better than none, but not for a second attempt at the same subject.
    const last = free.filter(({ restsUntilMs }) => restsUntilMs === null || tried.length === 0);
    const first = minimumOf(ready, (member) => this.queue.waitMs(lineOf(member), requester)) ?? last[0];
    if (!first) return null;
    this.turn = (this.members.indexOf(first) + 1) % this.members.length;
    return { ...first.open(), hasAlternative: first.isGateway || ready.some((member) => member !== first) };
  }

  /** Seconds until the first of the refused egresses may serve again; null while one is not refused. */
  blockedForSeconds(use: UseName): number | null {
    const firstMs = Math.min(...this.members.map(({ uses }) => uses[use].line.pauseRemainingMs));
    return firstMs === 0 ? null : Math.ceil(firstMs / 1000);
  }

  /** Whether background work may begin to read a list: one egress is not refused for lists, and its rate allows it. */
  get admitsLists(): boolean {
    // A resting one reads nothing, so that its rate would always allow it.
    const awake = this.members.filter(({ restsUntilMs }) => restsUntilMs === null);
    const lines = (awake.length > 0 ? awake : this.members).map(({ uses }) => uses.channel.line);
    return lines.some(({ pauseRemainingMs, rates }) => pauseRemainingMs === 0 && rates.get('list')?.admitsBackground);
  }

  /** Counts how an attempt ended for its egress, and lets it rest when no response arrived although others may serve. */
  recordEnd({ name: exit }: Egress, use: UseName, end: AttemptEnd): void {
    this.ends.inc({ exit, use, finding: end });
    const member = this.members.find(({ name }) => name === exit);
    if (!member) return;
    if (member.isGateway) {
      if (end === 'refused') member.refusedSessions += 1;
      else if (end === 'answered') member.refusedSessions = 0;
      if (member.refusedSessions < SESSIONS_REFUSED_MAX) return;
      member.refusedSessions = 0;
      member.uses[use].line.pause(use === 'video' ? 'player' : 'list', null);
    } else if (end === 'unreached' && this.members.length > 1) void member.check();
  }

  states(): EgressState[] {
    return this.members.map(({ name, restsUntilMs, uses }) => ({
      name,
      resting: restsUntilMs !== null,
      uses: EGRESS_USES.map((use) => ({ use, ...uses[use].line.state })),
    }));
  }

  /** Closes every connection, in use or not. */
  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
  }
}

function rank({ end }: AttemptResult<unknown>): number {
  return REPORTED_FIRST.indexOf(end);
}

function minimumOf(
  members: readonly ConfiguredEgress[],
  valueOf: (member: ConfiguredEgress) => number,
): ConfiguredEgress | undefined {
  const values = members.map(valueOf);
  return members[values.indexOf(Math.min(...values))];
}
