import type { ReadingContext } from '../../video-platform.js';
import { type Answer, type JsonAnswer, outcomeOf } from '../egress/upstream-response.js';
import type { Admission } from '../egress/circuit-breaker.js';
import type { Exit } from '../egress/egress-pool.js';
import type { HttpRequests } from '../egress/http-transport.js';
import { type InnertubeClientName, type InnertubeRequests, loadInnertubeRequests } from './request-templates.js';
import { type RetryBudget, withRetries } from '../egress/retry.js';
import type { UpstreamEvents } from '../upstream-events.js';
import { VisitorDesk } from './visitor-data-cache.js';
import { at, asString } from './json-fields.js';

/** Longest wait for visitor data; past it the local one is used. */
const VISITOR_TIMEOUT_MS = 5_000;
/** An issued one has 40 to 600 characters. */
const VISITOR_LENGTH_MAX = 4_096;

/** On whose behalf, through which exit, and with how many retries a piece of work is done. */
export interface Work {
  readonly exit: Exit;
  readonly admission: Pick<Admission, 'probe' | 'overtaken'>;
  readonly context: ReadingContext;
  readonly budget: RetryBudget;
}

export interface InnertubeCall {
  /** For the counters: `player`, `uploads`, … */
  kind: string;
  client: InnertubeClientName;
  /** Below `/youtubei/v1/`. */
  path: string;
  payload: Readonly<Record<string, unknown>>;
  /** A partial response mask, or null for the whole answer. */
  fields: string | null;
}

/** Speaks InnerTube: composes, sends, retries and counts; what an answer means is for others to say. */
export class InnertubeClient {
  private visitors: VisitorDesk | null = null;
  private readonly visitorLane = {};

  /** @param closing aborted when the process shuts down */
  constructor(
    private readonly http: HttpRequests,
    private readonly events: UpstreamEvents,
    private readonly closing: AbortSignal,
  ) {}

  /** Asks for JSON. Rejects only when `context.signal` is aborted. */
  async post(call: InnertubeCall, work: Work): Promise<JsonAnswer> {
    const requests = await loadInnertubeRequests();
    const visitorData = await this.desk(requests).get(work.exit, call.client, work.context.signal);
    const request = requests.compose(call.client, call.path, call.payload, visitorData, call.fields);
    const attempt = async () => {
      const answer = await this.counted(call, work, async (onTurn) => {
        const isShut = (): boolean => onTurn(work.admission.overtaken());
        return asJson(await this.http.send(request, work.exit.dispatcher, work.context, isShut));
      });
      if (call.fields !== null && answer.kind === 'json') {
        this.events.count('fields', call.client, answer.whole ? 'ignored' : 'honoured');
      }
      return answer;
    };
    return withRetries(attempt, work.budget, work.context);
  }

  /**
   * Fetches a text that an answer pointed to, with the face of the client that was answered. Rejects only when
   * `context.signal` is aborted.
   */
  async get(kind: string, client: InnertubeClientName, url: URL, work: Work): Promise<Answer> {
    const requests = await loadInnertubeRequests();
    const headers = { accept: '*/*', 'accept-language': 'en', 'user-agent': requests.userAgent(client) };
    const attempt = () =>
      this.counted({ kind, client }, work, (onTurn) =>
        this.http.send({ url, headers }, work.exit.dispatcher, work.context, () => onTurn(false)),
      );
    // An empty text is no accident that passes: it is how a caption URL refuses, so it is not tried again here. Nor is
    // a text held back by what other videos met meanwhile: whoever was given its URL is not refused.
    return withRetries(attempt, work.budget, work.context);
  }

  /**
   * Tells of a request when it has ended, with the time since its turn came: waiting for it says nothing of the platform.
   *
   * @param send calls `onTurn` when the turn comes, with whether it is not sent after all, which is what `onTurn` returns
   */
  private async counted<T extends Answer | JsonAnswer>(
    { kind, client }: Pick<InnertubeCall, 'kind' | 'client'>,
    { exit }: Pick<Work, 'exit'>,
    send: (onTurn: (isShut: boolean) => boolean) => Promise<T>,
  ): Promise<T> {
    let sentAtMs: number | undefined;
    const tell = (outcome: string): void => {
      const seconds = (performance.now() - (sentAtMs ?? performance.now())) / 1000;
      this.events.request({ kind, client, exit: exit.name, outcome, seconds });
    };
    try {
      const answer = await send((isShut) => {
        sentAtMs ??= performance.now();
        return isShut;
      });
      tell(outcomeOf(answer));
      return answer;
    } catch (error) {
      // Nobody waits for it any more. What was never sent is not told of.
      if (sentAtMs !== undefined) tell('aborted');
      throw error;
    }
  }

  /** Gives a client of an exit a new identity, after it was taken for a machine. */
  renewVisitor(exit: Exit, client: InnertubeClientName): void {
    this.visitors?.spoil(exit, client);
  }

  private desk(requests: InnertubeRequests): VisitorDesk {
    this.visitors ??= new VisitorDesk(
      (exit, client) => this.askForVisitor(requests, exit, client),
      () => requests.localVisitorData(),
    );
    return this.visitors;
  }

  private async askForVisitor(
    requests: InnertubeRequests,
    exit: Exit,
    client: InnertubeClientName,
  ): Promise<string | null> {
    const context: ReadingContext = {
      // Shared by whoever needs it next, so it does not end with the call that asked first.
      signal: AbortSignal.any([this.closing, AbortSignal.timeout(VISITOR_TIMEOUT_MS)]),
      deadlineAtMs: performance.now() + VISITOR_TIMEOUT_MS,
      lane: this.visitorLane,
    };
    const request = requests.compose(client, 'visitor_id', {}, requests.localVisitorData(), null);
    const answer = await this.counted({ kind: 'visitor', client }, { exit }, async (onTurn) =>
      asJson(await this.http.send(request, exit.dispatcher, context, () => onTurn(false))),
    );
    if (answer.kind !== 'json') return null;
    const visitorData = asString(at(answer.value, 'responseContext', 'visitorData'));
    return visitorData && visitorData.length <= VISITOR_LENGTH_MAX && /^[\x21-\x7e]+$/.test(visitorData)
      ? visitorData
      : null;
  }
}

function asJson(answer: Answer): JsonAnswer {
  if (answer.kind !== 'ok') return answer;
  // A JSON answer is never empty; what comes instead is told like the empty text of a caption URL that refuses.
  if (answer.media === 'empty') return { kind: 'blocked', reason: 'empty-body', retryAfterSeconds: null };
  if (answer.media === 'html') return { kind: 'unreadable', expected: 'JSON, not a page' };
  try {
    const value: unknown = JSON.parse(answer.body);
    return { kind: 'json', value, whole: at(value, 'responseContext') !== undefined };
  } catch {
    return { kind: 'unreadable', expected: 'whole JSON' };
  }
}
