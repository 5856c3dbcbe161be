import { applyDecorators, type ExecutionContext, Injectable, Logger } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { MessagePattern, RpcException } from '@nestjs/microservices';
import type { Span } from '@opentelemetry/api';
import { catchError, defer, finalize, Observable, throwError } from 'rxjs';
import { RequiresFeature } from '../auth/guarded.decorator.js';
import { ServiceAtCapacityError } from '../domain/errors.js';
import type { Feature } from '../domain/plan.js';
import { errorBody, type ErrorBodyDto } from '../http/error-body.js';
import { asDomainError, causeText } from '../http/error.filters.js';
import { RequestContext, requestContext, requestIdFrom, setRequestContext } from '../http/request-context.js';
import { ShutdownState } from '../http/shutdown-state.js';
import { RefusalSampler } from '../observability/logging/refusal-sampler.js';
import { activeTraceId, failSpan, inServerSpan } from '../observability/tracing/tracer.js';
import { fieldsOf } from './message-reader.js';
import type { ReplyChannel } from './message-transport.js';

/** The pattern of a handler: the subject over NATS, the pattern over TCP. Also the name of its messages in logs and spans. */
export const MessageName = Reflector.createDecorator<string>();

/** Handles the messages of a pattern, behind the guards of a feature. */
export function OnMessage(pattern: string, feature: Feature): MethodDecorator {
  return applyDecorators(MessagePattern(pattern), MessageName(pattern), RequiresFeature(feature));
}

/** Messages in the guards. NATS has no back-pressure, so that further ones are refused. */
const PENDING_MAX = 1_000;
const RETRY_AFTER_SECONDS = 2;

/** A call that arrived as a message. */
export class MessageCall extends RequestContext {
  readonly credentialLocation = 'the field "apiKey" of the message';
  readonly apiKey: string | undefined;
  /** Aborts when the response has ended or the caller has disconnected. */
  readonly responseEnd: AbortSignal;
  private readonly end = new AbortController();
  private readonly removeFromConnection: () => void;
  private disconnected = false;
  private resolveEnded: () => void;
  private readonly whenEnded = new Promise<void>((resolve) => (this.resolveEnded = resolve));

  constructor(
    message: unknown,
    /** The pattern of the message. */
    readonly name: string,
    readonly replyChannel: ReplyChannel,
  ) {
    const { apiKey, requestId } = fieldsOf(message);
    super(requestIdFrom(requestId));
    this.apiKey = typeof apiKey === 'string' && apiKey !== '' ? apiKey : undefined;
    this.responseEnd = this.end.signal;
    this.removeFromConnection = replyChannel.connection.begin(() => this.disconnect());
  }

  get address(): string | undefined {
    return this.replyChannel.address;
  }

  get isDisconnected(): boolean {
    return this.disconnected;
  }

  ended(): Promise<void> {
    return this.whenEnded;
  }

  disconnect(): void {
    this.disconnected = true;
    this.end.abort();
  }

  finish(): void {
    this.removeFromConnection();
    this.end.abort();
    this.resolveEnded();
  }

  /** A message has no headers; `GET /usage` returns the quota. */
  setHeader(): void {}
}

/** Does for messages what middleware and filters do for requests: ids, spans, log lines, error bodies, shutdown. */
@Injectable()
export class MessageCalls {
  private readonly logger = new Logger(MessageCalls.name);
  private readonly refusals = new RefusalSampler((counts) =>
    this.logger.log({ event: 'message_refusals_not_logged', counts }),
  );
  private readonly running = new Set<MessageCall>();
  /** The messages that have not passed the guards. */
  private readonly pending = new Set<MessageCall>();

  constructor(
    private readonly shutdown: ShutdownState,
    private readonly reflector: Reflector,
  ) {}

  /** The call of a message that has passed the guards: the limits of calls in flight apply from here on. */
  accept(context: object): MessageCall {
    const call = requestContext(context);
    if (!(call instanceof MessageCall)) throw new Error('The call did not arrive as a message.');
    this.pending.delete(call);
    return call;
  }

  /** Opens the call of a message and runs it through the guards and its handler; `next` returns the response. */
  open(context: ExecutionContext, replyChannel: ReplyChannel, next: () => Observable<unknown>): Observable<unknown> {
    const rpc = context.switchToRpc();
    const name = this.reflector.get(MessageName, context.getHandler());
    if (this.pending.size >= PENDING_MAX) return throwError(() => this.refuseUnread(rpc.getData<unknown>(), name));
    const call = new MessageCall(rpc.getData<unknown>(), name, replyChannel);
    setRequestContext(rpc.getContext<object>(), call);
    this.running.add(call);
    this.pending.add(call);
    const response = defer(() => (this.shutdown.refusing ? throwError(() => this.shutdown.refusal()) : next())).pipe(
      catchError((error: unknown) =>
        throwError(() => new RpcException(this.errorBody(error, call.requestId, call.log))),
      ),
      finalize(() => void this.finish(call)),
    );
    return inSpanOf(call, response);
  }

  /** Resolves when every call has ended. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all([...this.running].map((call) => call.ended()));
  }

  /** Disconnects the calls that are still running. */
  disconnectAll(): void {
    for (const call of this.running) call.disconnect();
  }

  /** Refuses a message at the lowest cost possible, because a flood of them has to be refused. */
  private refuseUnread(message: unknown, name: string): RpcException {
    const requestId = requestIdFrom(fieldsOf(message)['requestId']);
    const log: Record<string, unknown> = {};
    const body = this.errorBody(new ServiceAtCapacityError(RETRY_AFTER_SECONDS), requestId, log);
    this.writeLine(name, { requestId, ...log });
    return new RpcException(body);
  }

  private errorBody(error: unknown, requestId: string, log: Record<string, unknown>): ErrorBodyDto {
    const reported = asDomainError(error, requestId);
    const { code, message, retryable, retryAfterSeconds } = reported;
    log['code'] = code;
    if (reported.cause !== undefined) log['cause'] = causeText(reported.cause);
    // Over HTTP this is the header Retry-After.
    const fields = { ...reported.fields(), ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
    return errorBody({ code, message, retryable, fields }, requestId);
  }

  private async finish(call: MessageCall): Promise<void> {
    const { name, log, requestId, startedAtMs, replyChannel, responseEnd } = call;
    this.pending.delete(call);
    // A caller that has already disconnected raises no event any more.
    if (!responseEnd.aborted) {
      const disconnected = new Promise<void>((resolve) => responseEnd.addEventListener('abort', () => resolve()));
      await Promise.race([replyChannel.taken(), disconnected]);
    }
    this.running.delete(call);
    call.finish();
    this.writeLine(name, {
      requestId,
      ms: Math.round((performance.now() - startedAtMs) * 10) / 10,
      ...(call.isDisconnected && { left: true }),
      ...log,
    });
  }

  /** Errors of unauthenticated callers and of the rate limit are sampled: a caller controls their number. */
  private writeLine(pattern: string, fields: Readonly<Record<string, unknown>>): void {
    const { code, organizationId } = fields;
    if (typeof code === 'string' && (organizationId === undefined || code === 'rate_limited')) {
      if (!this.refusals.allows(code)) return;
    }
    this.logger.log({ event: 'message', pattern, ...fields });
  }
}

/** Runs the call within a span whose parent is the span that the sender names. */
function inSpanOf(call: MessageCall, response: Observable<unknown>): Observable<unknown> {
  const attributes = { 'messaging.operation.type': 'process', 'messaging.destination.name': call.name };
  return new Observable((subscriber) =>
    inServerSpan(`process ${call.name}`, call.replyChannel.traceHeaders, attributes, (span) => {
      const traceId = activeTraceId();
      if (traceId !== undefined) call.log['traceId'] = traceId;
      void call.ended().then(() => endSpan(span, call));
      return response.subscribe(subscriber);
    }),
  );
}

function endSpan(span: Span, { log, isDisconnected }: MessageCall): void {
  const { code } = log;
  if (typeof code === 'string') failSpan(span, code);
  if (isDisconnected) span.setAttribute('channel_transcripts.left', true);
  span.end();
}
