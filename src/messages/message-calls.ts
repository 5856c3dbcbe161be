import { type ExecutionContext, Injectable, Logger } from '@nestjs/common';
import { RpcException } from '@nestjs/microservices';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { catchError, defer, finalize, from, Observable, throwError } from 'rxjs';
import { ApiKeyGuard } from '../auth/api-key.guard.js';
import { Environment } from '../config/environment.js';
import { ServiceAtCapacityError } from '../domain/errors.js';
import { errorBody } from '../http/error-body.js';
import { asDomainError, logError } from '../http/error.filters.js';
import { RequestContext, requestContext, requestIdFrom, setRequestContext } from '../http/request-context.js';
import { ShutdownState } from '../http/shutdown-state.js';
import { RepeatedLines } from '../observability/logging/repeated-lines.js';
import { activeTraceId, failSpan, inServerSpan } from '../observability/tracing/tracer.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';
import { fieldsOf } from './message-reader.js';

/** The codes of refusals that cost a caller nothing, so that it can cause any number of them. */
const REFUSALS = ['unauthorized', 'invalid_api_key', 'feature_not_in_plan', 'rate_limited', 'service_unavailable'];
const RETRY_AFTER_SECONDS = 2;

/** The message's way back to its caller. */
export interface ReplyChannel {
  /** The pattern (TCP) or subject (NATS) of the message, in logs and spans. */
  readonly name: string;
  /** What messages arrive by: a connection (TCP) or a subject (NATS). It has at most half of a process's open messages. */
  readonly source: unknown;
  /** The address of the caller; undefined when the transport does not know it. */
  readonly address: string | undefined;
  /** Contains `traceparent` and `tracestate` when the caller sent them. */
  readonly traceHeaders: object;
  /** The maximum size of an event in bytes of JSON; undefined when there is none. */
  readonly eventBytesMax?: number | undefined;
  /** @returns removes the callback */
  onDisconnect(callback: () => void): () => void;
  /** Resolves when the reader (TCP) or the NATS server has taken what was sent. @param signal ends the wait (TCP) */
  taken(signal: AbortSignal): Promise<void>;
}

/** A call that arrived as a message. */
export class MessageCall extends RequestContext {
  readonly credentialLocation = 'the field "apiKey" of the message';
  readonly apiKey: string | undefined;
  isDisconnected = false;
  private readonly stopWatching: () => void;

  constructor(
    message: unknown,
    readonly replyChannel: ReplyChannel,
  ) {
    const { apiKey, requestId } = fieldsOf(message);
    super(requestIdFrom(requestId));
    this.apiKey = typeof apiKey === 'string' && apiKey !== '' ? apiKey : undefined;
    this.stopWatching = replyChannel.onDisconnect(() => this.disconnect());
  }

  get address(): string | undefined {
    return this.replyChannel.address;
  }

  /** The caller needs the response no more. */
  disconnect(): void {
    this.isDisconnected = true;
    this.finish();
  }

  override finish(): void {
    this.stopWatching();
    super.finish();
  }

  /** A message has no headers; `GET /usage` returns the quota. */
  setHeader(): void {}
}

/** The call of a message. @param context what Nest passes to its handler */
export function messageCall(context: object): MessageCall {
  const call = requestContext(context);
  if (!(call instanceof MessageCall)) throw new Error('The call did not arrive as a message.');
  return call;
}

/** Does for messages what middleware and filters do for requests: ids, spans, log lines, error bodies, shutdown. */
@Injectable()
export class MessageCalls {
  private readonly logger = new Logger(MessageCalls.name);
  /** Set at the shutdown. Messages on open connections have no other end. */
  isRefusing = false;
  private readonly refusals = new RepeatedLines((line) => this.logger.log(line));
  private readonly running = new Set<MessageCall>();

  constructor(
    private readonly shutdown: ShutdownState,
    private readonly environment: Environment,
    private readonly guard: ApiKeyGuard,
    private readonly metrics: RejectionMetrics,
  ) {}

  /** Opens the call of a message and runs it through the guards and its handler; `next` returns the response. */
  open(context: ExecutionContext, replyChannel: ReplyChannel, next: () => Observable<unknown>): Observable<unknown> {
    const rpc = context.switchToRpc();
    const call = new MessageCall(rpc.getData<unknown>(), replyChannel);
    setRequestContext(rpc.getContext<object>(), call);
    const isAdmitted = this.admit(call);
    const response = defer(() => {
      if (this.isRefusing) throw this.shutdown.refusal();
      return isAdmitted ? next() : from(this.refuse(call));
    }).pipe(
      catchError((error: unknown) => throwError(() => asRpcException(error, call))),
      finalize(() => void this.finish(call)),
    );
    return isAdmitted ? inSpanOf(call, response) : response;
  }

  /** Opens a call unless too many are open. Messages have no limit before they are read, as connections have over HTTP. */
  private admit(call: MessageCall): boolean {
    const { CALLS_PER_PROCESS: max } = this.environment;
    const { source } = call.replyChannel;
    const ofSource = [...this.running].filter(({ replyChannel }) => replyChannel.source === source).length;
    if (max > 0 && (this.running.size >= max || ofSource >= Math.ceil(max / 2))) return false;
    this.running.add(call);
    return true;
  }

  /** Refuses a call without any look-up. One whose key is not known to be valid counts as a failed authentication. */
  private async refuse(call: MessageCall): Promise<never> {
    this.metrics.count('process_in_flight');
    await this.guard.recordUnverified(call);
    throw new ServiceAtCapacityError(RETRY_AFTER_SECONDS);
  }

  /** Resolves when every call has ended. */
  async idle(): Promise<void> {
    await Promise.all([...this.running].map((call) => call.ended()));
  }

  /** Disconnects the calls that are still running. */
  disconnectAll(): void {
    for (const call of this.running) call.disconnect();
  }

  private async finish(call: MessageCall): Promise<void> {
    // Nobody who does not read the replies may hold places by errors, which are small.
    await (call.log['code'] === undefined ? call.replyChannel.taken(call.responseEnd) : nextTurn());
    this.running.delete(call);
    call.finish();
    const line = {
      event: 'message',
      pattern: call.replyChannel.name,
      requestId: call.requestId,
      ms: Math.round((performance.now() - call.startedAtMs) * 10) / 10,
      ...(call.isDisconnected && { left: true }),
      ...call.log,
    };
    const code = String(call.log['code']);
    if (REFUSALS.includes(code)) this.refusals.write(code, line);
    else this.logger.log(line);
  }
}

/** The error of a message has the body that HTTP would send. */
function asRpcException(error: unknown, call: MessageCall): RpcException {
  const { requestId } = call;
  const reported = asDomainError(error, requestId);
  const { retryAfterSeconds } = reported;
  logError(call, reported);
  // Over HTTP this is the header Retry-After.
  return new RpcException(errorBody(reported, requestId, retryAfterSeconds === undefined ? {} : { retryAfterSeconds }));
}

/** Runs the call within a span whose parent is the span that the sender names. */
function inSpanOf(call: MessageCall, response: Observable<unknown>): Observable<unknown> {
  const { name, traceHeaders } = call.replyChannel;
  const attributes = { 'messaging.operation.type': 'process', 'messaging.destination.name': name };
  return new Observable((subscriber) =>
    inServerSpan(`process ${name}`, traceHeaders, attributes, (span) => {
      const traceId = activeTraceId();
      if (traceId !== undefined) call.log['traceId'] = traceId;
      void call.ended().then(() => {
        const { code } = call.log;
        if (typeof code === 'string') failSpan(span, code);
        if (call.isDisconnected) span.setAttribute('channel_transcripts.left', true);
        span.end();
      });
      return response.subscribe(subscriber);
    }),
  );
}
