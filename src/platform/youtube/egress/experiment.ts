import { setImmediate } from 'node:timers/promises';
import type { YoutubeClient } from '../../../config/environment.js';
import { withTimeout, unlessAborted } from '../../../domain/waiting.js';
import type { ControlResult } from '../../egress-states.js';
import { report } from '../event-log.js';
import type { UpstreamMetrics } from '../upstream-metrics.js';
import { otherApps } from '../video/client-fallback.js';
import type { UseName } from './attempt.js';
import type { ControlEnd, Doubt, Egress, EgressUse, Probes, Verdict } from './egress.js';
import type { BudgetKind } from './line.js';
import { type RequestScope, serviceScope } from './request-pipeline.js';
import { type FailedResponse, isUnreached } from './upstream-response.js';

/** How long a doubt waits for requests of others that are or will be sent, whose responses answer it at no cost. */
const OTHERS_WAIT_MS = 30_000;
/** The time for a control before the deadline. */
const CONTROL_MS = 5_000;
const TIMEOUT_MS = 20_000;

/** The controls of one use: videos, or channels, that are known to be served. */
export interface Controls {
  /** The clients that they can be asked for with, in their order. */
  clients(egress: Egress): readonly YoutubeClient[];
  /** Their IDs, for a client of an egress, the surest first. */
  ids(egress: Egress, client: YoutubeClient): readonly string[];
  /** Asks for one. A failed response is judged by the experiment. */
  ask(
    id: string,
    client: YoutubeClient,
    kind: BudgetKind,
    scope: RequestScope,
  ): Promise<ControlEnd | FailedResponse | { kind: 'unparsable' }>;
  /** A client was refused at an egress while another was served. None where there is no other client. */
  rest?(egress: Egress, client: YoutubeClient): void;
}

/** One control that was asked for. */
interface Asked {
  readonly id: string;
  readonly end: ControlEnd;
  /** The platform's. */
  readonly retryAfterSeconds: number | null;
}

const RESULTS: Readonly<Record<Verdict, ControlResult>> = {
  served: 'served',
  'client-refused': 'client_refused',
  'address-refused': 'refused',
  unknown: 'unknown',
};

/**
 * Finds out about one address whom a refusal concerns. A refusal, and the word "unavailable", can be about the video, the
 * client or the address, and no wording tells which. What tells is a request for something that is known to be served: one of
 * another caller that was sent later, which costs nothing, or else a control. Until then nobody else is affected, unless a
 * second channel or video in a row is refused: then what has not started waits for the verdict.
 */
export class Experiment implements Probes {
  /** By the name of an egress and its use: the controls at the ends of pauses, so that each is asked for with another client. */
  private readonly probes = new Map<string, number>();
  /** The same: the clients whose controls were refused since an experiment paused the egress. */
  private readonly refused = new Map<string, Set<YoutubeClient>>();

  constructor(
    private readonly controls: Readonly<Record<UseName, Controls>>,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /**
   * Settles a doubt about the video or channel of an attempt. One experiment of a use runs at a time, for all who wait. Rejects
   * only when the signal of the scope is aborted.
   *
   * @param client that the control is asked for with first
   */
  settle(doubt: Doubt, client: YoutubeClient, scope: RequestScope): Promise<Verdict> {
    const use = scope.egress.uses[useOf(doubt.kind)];
    return use.whileWaiting(() => this.verdict(use, doubt, client, scope));
  }

  private async verdict(use: EgressUse, doubt: Doubt, client: YoutubeClient, scope: RequestScope): Promise<Verdict> {
    const { signal, deadlineAtMs } = scope.context;
    const othersUntilMs = Math.min(performance.now() + OTHERS_WAIT_MS, deadlineAtMs - CONTROL_MS);
    let isQuiet = false;
    for (;;) {
      signal.throwIfAborted();
      const known = use.verdictOn(doubt);
      if (known) return known;
      const nowMs = performance.now();
      if (nowMs >= deadlineAtMs) return 'unknown';
      if (use.running) {
        const { doubt: other, verdict } = use.running;
        const found = await unlessAborted(verdict, signal);
        // What was served before this doubt does not answer it, and neither does another refusal of a client.
        const isAlike = other.kind === doubt.kind && other.client === doubt.client;
        if (found !== 'served' && (found !== 'client-refused' || isAlike)) return found;
      } else if (nowMs < othersUntilMs && use.areOthersSent) {
        await unlessAborted(withTimeout(use.line.changed(), othersUntilMs - nowMs), signal);
        isQuiet = false;
      } else if (!isQuiet) {
        // What just arrived is read first: it may be the answer, or name another client that is refused.
        await setImmediate();
        isQuiet = true;
      } else {
        const verdict = this.run(doubt.kind, client, scope).finally(() => {
          use.running = null;
          use.changed();
        });
        use.running = { doubt, verdict };
      }
    }
  }

  /**
   * Asks for a control as the client, and for another one as clients of other apps. An address is refused when two controls
   * are; a client is refused when another one is served.
   */
  private async run(kind: BudgetKind, client: YoutubeClient, { egress, attempt }: RequestScope): Promise<Verdict> {
    const { subject } = attempt;
    const [name, key] = [useOf(kind), keyOf(egress, kind)];
    const use = egress.uses[name];
    const controls = this.controls[name];
    this.refused.set(key, new Set());
    const first = await this.ask(egress, client, kind, subject, 0);
    const others = otherApps(client, controls.clients(egress), (other) => use.isDoubted(kind, other));
    let second: Asked | null = null;
    // One whose version is retired tells nothing.
    for (const other of first.end === 'refused' ? (others.length > 0 ? others : [client]) : [])
      if (!second || second.end === 'unknown') second = await this.ask(egress, other, kind, subject, 1);
    const verdict = verdictOf(first.end, second?.end, others.length === 0);
    const asked = second ? [first, second] : [first];
    if (verdict === 'client-refused') {
      use.clientRefused(kind, client);
      controls.rest?.(egress, client);
    } else if (verdict === 'address-refused' && !egress.gateway) {
      const retryAfter = asked.find(({ retryAfterSeconds }) => retryAfterSeconds !== null);
      use.line.pause(kind, retryAfter?.retryAfterSeconds ?? null);
    }
    if (!use.line.paused) this.refused.delete(key);
    use.line.noteControl(kind, RESULTS[verdict]);
    this.metrics.notice('control', client, verdict);
    const fields = { exit: egress.name, use: name, kind, client, subject, finding: verdict };
    report(verdict === 'served' ? 'log' : 'warn', 'youtube_control_asked', {
      ...fields,
      controls: asked.map(({ id }) => id),
    });
    return verdict;
  }

  /** Ends a pause that is over, or prolongs it, by one control. */
  async endPause(egress: Egress, use: UseName): Promise<void> {
    const { line } = egress.uses[use];
    const kind = line.refusedKind;
    if (!line.isDue || kind === null) return;
    const end = await this.probe(egress, kind);
    report('log', 'youtube_control_asked', { exit: egress.name, use, kind, end });
    line.noteControl(kind, end);
    if (end === 'served') line.resume();
    else if (line.isDue) line.pause(kind, null);
  }

  /**
   * Asks for one control, each time with another client.
   *
   * @param kind the kind of request that was refused; null to find out whether an egress is reached
   */
  async probe(egress: Egress, kind: BudgetKind | null): Promise<ControlEnd> {
    const key = keyOf(egress, kind ?? 'player');
    const controls = this.controls[useOf(kind ?? 'player')];
    const refused = this.refused.get(key) ?? new Set();
    const all = controls.clients(egress);
    const untried = all.filter((each) => !refused.has(each));
    const probes = this.probes.get(key) ?? 0;
    this.probes.set(key, probes + 1);
    const client = untried[probes % untried.length] ?? all[probes % all.length];
    // Only WEB is configured, which needs a token: the next video finds out, or the pause would never end.
    if (!client) return 'served';
    const { end } = await this.ask(egress, client, kind ?? 'player', '', probes);
    if (end !== 'served' || kind === null) return end;
    // The clients were refused, and perhaps never the address: the next videos begin with the one that is served.
    for (const each of refused) if (each !== client) controls.rest?.(egress, each);
    this.refused.delete(key);
    return end;
  }

  /** Asks for a control; one that takes too long was not reached. @param position among those that are not doubted */
  private async ask(
    egress: Egress,
    client: YoutubeClient,
    kind: BudgetKind,
    doubted: string,
    position: number,
  ): Promise<Asked> {
    const controls = this.controls[useOf(kind)];
    const ids = controls.ids(egress, client).filter((id) => id !== doubted);
    const id = ids[position % ids.length] ?? '';
    const scope = serviceScope(egress, id, TIMEOUT_MS);
    const response = await controls.ask(id, client, kind, scope).catch(() => 'unreached' as const);
    const end = typeof response === 'string' ? response : endOf(response);
    if (end === 'refused') this.refused.get(keyOf(egress, kind))?.add(client);
    const isBlocked = typeof response !== 'string' && response.kind === 'blocked';
    return { id, end, retryAfterSeconds: isBlocked ? response.retryAfterSeconds : null };
  }
}

function useOf(kind: BudgetKind): UseName {
  return kind === 'list' ? 'channel' : 'video';
}

function keyOf({ name }: Egress, kind: BudgetKind): string {
  return `${name} ${useOf(kind)}`;
}

function endOf(response: FailedResponse | { kind: 'unparsable' }): ControlEnd {
  if (response.kind === 'blocked') return 'refused';
  return isUnreached(response) ? 'unreached' : 'unknown';
}

/** Whom two controls show to be refused. @param alone whether there is no client of another app */
function verdictOf(first: ControlEnd, second: ControlEnd | undefined, alone: boolean): Verdict {
  if (first === 'served') return 'served';
  if (first !== 'refused') return 'unknown';
  if (second === 'served') return alone ? 'served' : 'client-refused';
  return second === 'refused' ? 'address-refused' : 'unknown';
}
