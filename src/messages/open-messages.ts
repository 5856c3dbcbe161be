import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ExecutionContext, Injectable, Logger, type Type } from '@nestjs/common';
import { RpcException } from '@nestjs/microservices';
import { catchError, defer, finalize, from, Observable, throwError } from 'rxjs';
import { Authentication } from '../auth/authentication.js';
import { Environment } from '../config/environment.js';
import { ServiceAtCapacityError, invalidField } from '../domain/errors.js';
import { errorBody } from '../http/errors/error-body.js';
import { asDomainError, logError } from '../http/errors/error.filter.js';
import { RequestContext, requestIdFrom, setRequestContext } from '../http/server/request-context.js';
import { ShutdownState } from '../http/server/connections.js';
import { RepeatedLines } from '../observability/logging/logger.js';
import { activeTraceId, failSpan, inServerSpan } from '../observability/tracing/tracer.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';
import type { ReplyChannel } from './message-transports.js';
import { readInput } from '../http/routes/validation.js';

/** Identifies the caller; read before the parameters. */
const CALLER_FIELDS = new Set(['apiKey', 'requestId']);

/** The fields of a message; none when it is no JSON object. */
function fieldsOf(message: unknown): Readonly<Record<string, unknown>> {
  return typeof message === 'object' && message !== null && !Array.isArray(message) ? { ...message } : {};
}

/**
 * Reads the parameters of a message about one channel, playlist, video or subscription, which are those of the HTTP query. A value may be
 * written as there or as JSON.
 *
 * @param type the class of the query
 * @param idDescription what `id` must be
 * @throws InvalidRequestError naming every field that is wrong or unknown
 */
export function readIdMessage<Query extends object>(
  message: unknown,
  type: Type<Query>,
  idDescription: string,
): { id: string; query: Query } {
  const { id, ...parameters } = parametersOf(message);
  if (typeof id !== 'string') {
    throw invalidField('id', `id must be a string: ${idDescription}.`);
  }
  return { id, query: readInput(type, parameters, 'either') };
}

/** Reads the parameters of a message that is about nothing that has an ID. @throws InvalidRequestError */
export function readMessage<Parameters extends object>(
  message: unknown,
  type: Type<Parameters>,
  form: 'json' | 'either',
): Parameters {
  return readInput(type, parametersOf(message), form);
}

function parametersOf(message: unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fieldsOf(message)).filter(([name]) => !CALLER_FIELDS.has(name)));
}

/** The codes of refusals that cost a caller nothing, so that it can cause any number of them. */
const REFUSALS = [
  ...['unauthorized', 'invalid_api_key', 'invalid_token', 'organization_not_linked', 'client_blocked'],
  ...['feature_not_in_plan', 'scope_missing', 'rate_limited', 'service_unavailable'],
];
const RETRY_AFTER_SECONDS = 2;

export class MessageContext extends RequestContext {
  readonly credentialLocation = 'the field "apiKey" of the message';
  readonly credential: string | undefined;
  isDisconnected = false;
  private readonly stopWatching: () => void;

  constructor(
    message: unknown,
    readonly replyChannel: ReplyChannel,
  ) {
    const { apiKey, requestId } = fieldsOf(message);
    super(requestIdFrom(requestId));
    this.credential = typeof apiKey === 'string' && apiKey !== '' ? apiKey : undefined;
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

/** Does for messages what middleware and filters do for requests: ids, spans, log lines, error bodies, shutdown. */
@Injectable()
export class OpenMessages {
  private readonly logger = new Logger(OpenMessages.name);
  /** Set at the shutdown. Messages on open connections have no other end. */
  isRefusing = false;
  private readonly refusals = new RepeatedLines((line) => this.logger.log(line));
  private readonly running = new Set<MessageContext>();

  constructor(
    private readonly shutdown: ShutdownState,
    private readonly environment: Environment,
    private readonly authentication: Authentication,
    private readonly metrics: RejectionMetrics,
  ) {}

  /** Opens the call of a message and runs it through the guards and its handler; `next` returns the response. */
  open(execution: ExecutionContext, replyChannel: ReplyChannel, next: () => Observable<unknown>): Observable<unknown> {
    const rpc = execution.switchToRpc();
    const context = new MessageContext(rpc.getData<unknown>(), replyChannel);
    setRequestContext(rpc.getContext<object>(), context);
    const isAdmitted = this.admit(context);
    const response = defer(() => {
      if (this.isRefusing) throw this.shutdown.refusal();
      return isAdmitted ? next() : from(this.refuse(context));
    }).pipe(
      catchError((error: unknown) => throwError(() => asRpcException(error, context))),
      finalize(() => void this.finish(context)),
    );
    return isAdmitted ? inSpanOf(context, response) : response;
  }

  /** Opens a call unless too many are open. Messages have no limit before they are read, as connections have over HTTP. */
  private admit(context: MessageContext): boolean {
    const { CALLS_PER_PROCESS: max } = this.environment;
    const { source } = context.replyChannel;
    const ofSource = [...this.running].filter(({ replyChannel }) => replyChannel.source === source).length;
    if (max > 0 && (this.running.size >= max || ofSource >= Math.ceil(max / 2))) return false;
    this.running.add(context);
    return true;
  }

  /** Refuses a call without any look-up. One whose key or token is not known to be valid counts as a failed authentication. */
  private async refuse(context: MessageContext): Promise<never> {
    this.metrics.count('process_in_flight');
    await this.authentication.recordUnverified(context);
    throw new ServiceAtCapacityError(RETRY_AFTER_SECONDS);
  }

  async idle(): Promise<void> {
    await Promise.all([...this.running].map((context) => context.ended()));
  }

  disconnectAll(): void {
    for (const context of this.running) context.disconnect();
  }

  private async finish(context: MessageContext): Promise<void> {
    // Nobody who does not read the replies may hold places by errors, which are small.
    await (context.log['code'] === undefined ? context.replyChannel.taken(context.responseEnd) : nextTurn());
    this.running.delete(context);
    context.finish();
    const line = {
      event: 'message',
      pattern: context.replyChannel.name,
      requestId: context.requestId,
      ms: Math.round((performance.now() - context.startedAtMs) * 10) / 10,
      ...(context.isDisconnected && { left: true }),
      ...context.log,
    };
    const code = String(context.log['code']);
    if (REFUSALS.includes(code)) this.refusals.write(code, line);
    else this.logger.log(line);
  }
}

/** The error of a message has the body that HTTP would send. */
function asRpcException(error: unknown, context: MessageContext): RpcException {
  const { requestId } = context;
  const reported = asDomainError(error, requestId);
  const { retryAfterSeconds } = reported;
  logError(context, reported);
  // Over HTTP this is the header Retry-After.
  return new RpcException(errorBody(reported, requestId, retryAfterSeconds === undefined ? {} : { retryAfterSeconds }));
}

/** Runs the call within a span whose parent is the span that the sender names. */
function inSpanOf(context: MessageContext, response: Observable<unknown>): Observable<unknown> {
  const { name, traceHeaders } = context.replyChannel;
  const attributes = { 'messaging.operation.type': 'process', 'messaging.destination.name': name };
  return new Observable((subscriber) =>
    inServerSpan(`process ${name}`, traceHeaders, attributes, (span) => {
      const traceId = activeTraceId();
      if (traceId !== undefined) context.log['traceId'] = traceId;
      void context.ended().then(() => {
        const { code } = context.log;
        if (typeof code === 'string') failSpan(span, code);
        if (context.isDisconnected) span.setAttribute('channel_transcripts.left', true);
        span.end();
      });
      return response.subscribe(subscriber);
    }),
  );
}
