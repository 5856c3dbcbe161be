import { randomBytes } from 'node:crypto';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { Environment } from '../../../config/environment.js';
import type { ControlResult } from '../../egress-states.js';
import { report } from '../event-log.js';
import type { UseName } from './attempt.js';
import { type BudgetKind, Line } from './line.js';
import type { RequestQueue } from './request-queue.js';
import { SendingRate } from './sending-rate.js';
import { isHardRefusal, type NotSent, type UpstreamResponse } from './upstream-response.js';

/** How long an egress that was not reached comes last, until a control is asked through it again. */
const REST_MS = 60_000;

/** The placeholder in the URL of a rotating gateway, which gives each session an address of its own. */
const SESSION = '{session}';
/** The requests of one attempt are sent one after the other, and its exact date beside them. */
const CONNECTIONS_PER_SESSION = 2;

/**
 * A network path to the platform: this machine's own address, a proxy, or a session of a gateway. Visitor data belongs to
 * one egress.
 */
export interface Egress {
  /** For logs and metrics: never the proxy's URL, which can contain a password. Sessions have the name of their gateway. */
  readonly name: string;
  readonly dispatcher: Dispatcher;
  readonly uses: Readonly<Record<UseName, EgressUse>>;
  readonly optional: OptionalBackoff;
  /** The same for all sessions of a gateway; undefined for other egresses. */
  readonly gateway?: object;
  /** Keeps a session open until work has ended that does not end with its attempt. */
  keepOpen(work: Promise<unknown>): void;
}

/** A refusal, or a word that can be one, of which it is unknown whom it concerns: the video or channel, the client or the address. */
export interface Doubt {
  readonly kind: BudgetKind;
  /** Whose word it is about; null when any client that is served answers it. */
  readonly client: string | null;
  /** What is served to a request sent after this answers it, in milliseconds of `performance.now()`. */
  readonly sinceMs: number;
}

/**
 * Whom a doubt concerns. `served`: the video or channel, because another one is served. `unknown`: the control could not be
 * asked.
 */
export type Verdict = 'served' | 'client-refused' | 'address-refused' | 'unknown';

/** How the request for a control ended. `unreached`: no response of the platform arrived. `unknown`: it said nothing. */
export type ControlEnd = Exclude<ControlResult, 'client_refused'>;

/** Asks for controls, at the end of a pause and to find out whether an egress is reached. */
export interface Probes {
  endPause(egress: Egress, use: UseName): Promise<void>;
  /** @param kind the kind of request that was refused; null to find out whether the egress is reached */
  probe(egress: Egress, kind: BudgetKind | null): Promise<ControlEnd>;
}

/**
 * One use (videos or channels) of one egress: its requests (`line`), and what is known of its address. The sessions of a
 * gateway share their line, and each has an address of its own.
 */
export class EgressUse {
  /** What was doubted since a request of the kind was served: the first video or channel, whether others were, and with which clients. */
  private readonly doubted = new Map<BudgetKind, { first: string; isOne: boolean; clients: Set<string> }>();
  /** When the newest request that was served was sent, by kind and client. */
  private readonly servedAtMs = new Map<string, number>();
  private readonly refusedAtMs = new Map<string, number>();
  private waiting = 0;
  /** The experiment that runs, for all who wait. */
  running: { readonly doubt: Doubt; readonly verdict: Promise<Verdict> } | null = null;

  /** @param isAlone whether the line is of this address alone: then its requests say something, and it can be held */
  constructor(
    readonly line: Line,
    private readonly isAlone: boolean,
  ) {}

  /** A request was served, which answers the doubts since it was sent. */
  served(kind: BudgetKind, client: string, sentAtMs: number): void {
    this.doubted.delete(kind);
    for (const key of [keyOf(kind, client), keyOf(kind, null)])
      this.servedAtMs.set(key, Math.max(sentAtMs, this.servedAtMs.get(key) ?? -Infinity));
    this.changed();
  }

  /** The control of a client was refused while another was served. */
  clientRefused(kind: BudgetKind, client: string): void {
    this.refusedAtMs.set(keyOf(kind, client), performance.now());
  }

  /** A channel or video is doubted. @returns whether it is the only one since a request of the kind was served */
  doubt(kind: BudgetKind, subject: string, client: string): boolean {
    const doubted = this.doubted.get(kind) ?? { first: subject, isOne: true, clients: new Set() };
    this.doubted.set(kind, doubted);
    doubted.isOne &&= doubted.first === subject;
    doubted.clients.add(client);
    this.changed();
    return doubted.isOne;
  }

  /** Whether a channel or video was doubted with a client, or with any, and no request of the kind was served since. */
  isDoubted(kind: BudgetKind, client?: string): boolean {
    const doubted = this.doubted.get(kind);
    return doubted !== undefined && (client === undefined || doubted.clients.has(client));
  }

  /** What is known about a doubt without an experiment; null for nothing. */
  verdictOn({ kind, client, sinceMs }: Doubt): Verdict | null {
    if (this.line.paused) return 'address-refused';
    if (this.isServed({ kind, client, sinceMs })) return 'served';
    return (this.refusedAtMs.get(keyOf(kind, client)) ?? -Infinity) >= sinceMs ? 'client-refused' : null;
  }

  isServed({ kind, client, sinceMs }: Doubt): boolean {
    return (this.servedAtMs.get(keyOf(kind, client)) ?? -Infinity) >= sinceMs;
  }

  /** Whether requests of others are in flight through this address or will be sent, whose responses answer a doubt at no cost. */
  get areOthersSent(): boolean {
    const { line } = this;
    return this.isAlone && (line.running > 0 || (line.waiting > 0 && !line.held));
  }

  /** Holds back what has not started from the second doubted video or channel in a row on, while somebody waits for a verdict. */
  async whileWaiting<T>(work: () => Promise<T>): Promise<T> {
    this.waiting += 1;
    this.changed();
    try {
      return await work();
    } finally {
      this.waiting -= 1;
      this.changed();
    }
  }

  /** Something has changed that a wait for a verdict goes by. */
  changed(): void {
    const areSeveral = [...this.doubted.values()].some(({ isOne }) => !isOne);
    if (this.isAlone) this.line.held = this.waiting > 0 && areSeveral;
    this.line.notify();
  }
}

function keyOf(kind: BudgetKind, client: string | null): string {
  return `${kind} ${client ?? '*'}`;
}

/** The first pause of optional requests that are refused, and the longest. */
const PAUSE_FIRST_MS = 60_000;
const PAUSE_MAX_MS = 3_600_000;

/**
 * Optional requests (the feed, the list of Shorts, exact dates) that the platform refuses an egress are not sent for a minute,
 * then twice as long, up to an hour. By kind of request; nothing else is affected.
 */
export class OptionalBackoff {
  private readonly pauses = new Map<string, { ms: number; untilMs: number }>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Why a request is not sent now; null when it may be. */
  refusal(kind: string): NotSent | null {
    const remainingMs = (this.pauses.get(kind)?.untilMs ?? 0) - this.now();
    if (remainingMs <= 0) return null;
    return { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: Math.ceil(remainingMs / 1_000) };
  }

  learn(kind: string, response: UpstreamResponse): void {
    if (response.kind === 'ok') this.pauses.delete(kind);
    if (!isHardRefusal(response) && !(response.kind === 'blocked' && response.reason === 'forbidden')) return;
    // Refusals of requests that were sent before the pause are the same refusal.
    if (this.refusal(kind)) return;
    const ms = Math.min(PAUSE_MAX_MS, (this.pauses.get(kind)?.ms ?? PAUSE_FIRST_MS / 2) * 2);
    this.pauses.set(kind, { ms, untilMs: this.now() + ms });
  }
}

export interface OpenEgress {
  readonly egress: Egress;
  /** Closes the session of a gateway. */
  readonly release: () => void;
}

/** An egress as configured: one that is used as it is, or a gateway, which opens a session for each attempt. */
export class ConfiguredEgress {
  readonly uses: Egress['uses'];
  readonly isGateway: boolean;
  /** It was not reached: it comes last until then, and after that until a control is served. Null when it does not rest. */
  restsUntilMs: number | null = null;
  /** Sessions of a gateway that were refused in a row. */
  refusedSessions = 0;
  private readonly probing = new Set<UseName | 'rest'>();
  /** Undefined for a gateway. */
  private readonly direct: Egress | undefined;
  private readonly sessions = new Set<Dispatcher>();

  constructor(
    readonly name: string,
    private readonly proxyUrl: string | null,
    private readonly environment: Environment,
    queue: RequestQueue,
    private readonly probes: Probes,
    private readonly now: () => number,
  ) {
    const { UPSTREAM_PLAYER_PER_MINUTE, UPSTREAM_TIMEDTEXT_PER_MINUTE, UPSTREAM_CONCURRENCY } = environment;
    const isGateway = (this.isGateway = proxyUrl?.includes(SESSION) === true);
    const slots = { max: UPSTREAM_CONCURRENCY, running: 0 };
    const line = (use: UseName, rates: Line['rates'], videos?: Line) => {
      const onPause = (kind: BudgetKind, pauseMs: number | null) => this.reportPause(use, kind, pauseMs);
      const options = { now, startsSlowly: !isGateway, onChange: () => queue.startNext(), onPause };
      return queue.open(new Line(slots, rates, options, videos));
    };
    const player = new SendingRate({ ceilingPerMinute: UPSTREAM_PLAYER_PER_MINUTE }, now);
    const captions = new SendingRate({ ceilingPerMinute: UPSTREAM_TIMEDTEXT_PER_MINUTE }, now);
    const list = new SendingRate({ background: 'apart' }, now);
    const videos = line(
      'video',
      new Map<BudgetKind, SendingRate>([
        ['player', player],
        ['captions', captions],
      ]),
    );
    const channels = line('channel', new Map([['list', list]]), videos);
    this.uses = { channel: new EgressUse(channels, !isGateway), video: new EgressUse(videos, !isGateway) };
    if (!isGateway) {
      const dispatcher = openDispatcher(proxyUrl, environment);
      const { uses } = this;
      this.direct = { name, dispatcher, uses, optional: new OptionalBackoff(), keepOpen: () => undefined };
    }
  }

  /** Opens a session of a gateway, with connections of its own so that it gets an address of its own. */
  open(): OpenEgress {
    if (this.direct) return { egress: this.direct, release: () => undefined };
    const { name, uses } = this;
    const url = this.proxyUrl?.replaceAll(SESSION, randomBytes(8).toString('hex')) ?? null;
    const dispatcher = openDispatcher(url, this.environment, CONNECTIONS_PER_SESSION);
    this.sessions.add(dispatcher);
    const works: Promise<unknown>[] = [];
    const release = () => {
      void Promise.allSettled(works).then(() => {
        this.sessions.delete(dispatcher);
        return dispatcher.destroy();
      });
    };
    const ownUses = { channel: new EgressUse(uses.channel.line, false), video: new EgressUse(uses.video.line, false) };
    const keepOpen = (work: Promise<unknown>) => void works.push(work);
    const egress = { name, dispatcher, uses: ownUses, optional: new OptionalBackoff(), gateway: this, keepOpen };
    return { egress, release };
  }

  /** Ends a pause that is over, or prolongs it, by a control. */
  async endPause(use: UseName): Promise<void> {
    if (this.uses[use].line.isDue) await this.once(use, (egress) => this.probes.endPause(egress, use));
  }

  /** Finds out whether an egress through which a response did not arrive can be reached, and lets it rest otherwise. */
  async check(): Promise<void> {
    if (this.restsUntilMs !== null && this.restsUntilMs > this.now()) return;
    await this.once('rest', async (egress) => {
      const rested = this.restsUntilMs !== null;
      // It comes last from now on.
      this.restsUntilMs = this.now() + REST_MS;
      const end = await this.probes.probe(egress, null);
      if (end === 'unreached') report('warn', 'youtube_exit_rested', { exit: this.name, restSeconds: REST_MS / 1000 });
      else this.restsUntilMs = null;
      if (rested && end !== 'unreached') report('log', 'youtube_exit_back', { exit: this.name });
    });
  }

  async close(): Promise<void> {
    const dispatchers = [...(this.direct ? [this.direct.dispatcher] : []), ...this.sessions];
    await Promise.all(dispatchers.map((dispatcher) => dispatcher.destroy()));
  }

  /** Runs at most one of a kind at a time, through this egress. */
  private async once(what: UseName | 'rest', work: (egress: Egress) => Promise<void>): Promise<void> {
    if (this.probing.has(what)) return;
    this.probing.add(what);
    const { egress, release } = this.open();
    await work(egress).finally(() => {
      release();
      this.probing.delete(what);
    });
  }

  private reportPause(use: UseName, kind: BudgetKind, pauseMs: number | null): void {
    const { name: exit } = this;
    if (pauseMs !== null)
      return report('warn', 'youtube_block_opened', { exit, use, kind, openForSeconds: pauseMs / 1000 });
    report('log', 'youtube_block_closed', { exit, use, kind });
    if (use === 'channel') return;
    const { rates } = this.uses.video.line;
    const [playerPerMinute, captionsPerMinute] = [...rates.values()].map((rate) => rate.perMinute);
    report('log', 'youtube_pace_learned', { exit, playerPerMinute, captionsPerMinute });
  }
}

/** Opens connections directly, or through an HTTP(S) proxy. @param proxyUrl null for direct connections */
function openDispatcher(
  proxyUrl: string | null,
  { UPSTREAM_CONCURRENCY, UPSTREAM_TIMEOUT_SECONDS }: Environment,
  connections = UPSTREAM_CONCURRENCY,
): Dispatcher {
  const timeout = UPSTREAM_TIMEOUT_SECONDS * 1000;
  const shared = { connections, pipelining: 1, connect: { timeout } };
  if (proxyUrl === null) return new Agent(shared);
  return new ProxyAgent({ ...shared, uri: proxyUrl, requestTls: { timeout }, proxyTls: { timeout } });
}
