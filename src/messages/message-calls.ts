import { Injectable, Logger, type ExecutionContext } from '@nestjs/common';
import { RpcException } from '@nestjs/microservices';
import { catchError, defer, finalize, Observable, throwError } from 'rxjs';
import { ServiceAtCapacityError } from '../domain/errors.js';
import { asDomainError, causeText } from '../http/as-domain-error.js';
import { errorBody, type ErrorBodyDto } from '../http/error-body.js';
import { requestContext, requestIdFrom, setRequestContext } from '../http/request-context.js';
import { ShutdownState } from '../http/shutdown-state.js';
import { RefusalSampler } from '../observability/logging/refusal-sampler.js';
import { activeTracer, type ServerSpan } from '../observability/tracing/tracer.js';
import { MessageCall } from './message-call.js';
import { fieldsOf } from './transcripts-message.js';
import type { ReplyChannel } from './reply-channel.js';

/** Messages come too fast for longer than a moment. */
const RETRY_AFTER_SECONDS = 2;

/** The subject over NATS, the pattern over TCP. */
export const TRANSCRIPTS_PATTERN = 'channels.transcripts';

/**
 * What stands around every message, as filters and middleware stand around a request: its id, its span, its line in the
 * log, its errors in the one envelope, and who waits for it.
 */
@Injectable()
export class MessageCalls {
  private readonly logger = new Logger(MessageCalls.name);
  private readonly refusals = new RefusalSampler((counts) =>
    this.logger.log({ event: 'message_refusals_not_logged', counts }),
  );
  private readonly running = new Set<MessageCall>();

  constructor(private readonly shutdown: ShutdownState) {}

  /** What is known of the message that came with a context. */
  exchange(context: object): MessageCall {
    const exchange = requestContext(context);
    if (!(exchange instanceof MessageCall)) throw new Error('The call did not arrive as a message.');
    return exchange;
  }

  /** Runs a message through the gates and its handler, of which `next` is the answer. */
  open(context: ExecutionContext, replyChannel: ReplyChannel, next: () => Observable<unknown>): Observable<unknown> {
    const rpc = context.switchToRpc();
    const subject = rpc.getContext<object>();
    if (replyChannel.isFull) return throwError(() => this.refusedUnread(rpc.getData<unknown>()));
    const exchange = new MessageCall(rpc.getData<unknown>(), replyChannel);
    setRequestContext(subject, exchange);
    this.running.add(exchange);
    const reply = defer(() => (this.shutdown.refusing ? throwError(() => this.shutdown.refusal()) : next())).pipe(
      catchError((error: unknown) =>
        throwError(() => new RpcException(this.refusal(error, exchange.requestId, exchange.log))),
      ),
      finalize(() => void this.finish(exchange)),
    );
    return inSpanOf(exchange, reply);
  }

  /** Resolves when every message is answered, or its caller has gone. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all([...this.running].map((exchange) => exchange.ended()));
  }

  /** Nobody waits for what still runs. */
  disconnectAll(): void {
    for (const exchange of this.running) exchange.disconnect();
  }

  /** Costs as little as it can: messages come faster than they can be looked at. */
  private refusedUnread(message: unknown): RpcException {
    const requestId = requestIdFrom(fieldsOf(message)['requestId']);
    const log: Record<string, unknown> = {};
    const body = this.refusal(new ServiceAtCapacityError(RETRY_AFTER_SECONDS), requestId, log);
    this.writeLine({ requestId, ...log });
    return new RpcException(body);
  }

  private refusal(error: unknown, requestId: string, log: Record<string, unknown>): ErrorBodyDto {
    const refusal = asDomainError(error, requestId);
    const { code, message, retryable, retryAfterSeconds } = refusal;
    log['code'] = code;
    if (refusal.cause !== undefined) log['cause'] = causeText(refusal.cause);
    // Over HTTP a header says it.
    const fields = { ...refusal.fields(), ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
    return errorBody({ code, message, retryable, fields }, requestId);
  }

  private async finish(exchange: MessageCall): Promise<void> {
    const { log, requestId, startedAtMs, replyChannel } = exchange;
    const taken = new Promise<void>((resolve) => exchange.disconnected.addEventListener('abort', () => resolve()));
    await Promise.race([replyChannel.flushed(), taken]);
    this.running.delete(exchange);
    exchange.finish();
    this.writeLine({
      requestId,
      ms: Math.round((performance.now() - startedAtMs) * 10) / 10,
      ...(exchange.disconnected.aborted && { left: true }),
      ...log,
    });
  }

  /** Of refusals before anybody was known to ask, only a sample: their number is anybody's choice. */
  private writeLine(fields: Readonly<Record<string, unknown>>): void {
    const { code, organizationId } = fields;
    if (typeof code === 'string' && (organizationId === undefined || code === 'rate_limited')) {
      if (!this.refusals.allows(code)) return;
    }
    this.logger.log({ event: 'message', pattern: TRANSCRIPTS_PATTERN, ...fields });
  }
}

/** Everything that is done for the message belongs to its span, whose parent is the one that its sender names. */
function inSpanOf(exchange: MessageCall, reply: Observable<unknown>): Observable<unknown> {
  const tracer = activeTracer();
  if (!tracer) return reply;
  const attributes = { 'messaging.operation.type': 'process', 'messaging.destination.name': TRANSCRIPTS_PATTERN };
  return new Observable((subscriber) =>
    tracer.serve(`process ${TRANSCRIPTS_PATTERN}`, exchange.replyChannel.traceHeaders, attributes, (span) => {
      exchange.log['traceId'] = tracer.traceId();
      void exchange.ended().then(() => endSpan(span, exchange));
      return reply.subscribe(subscriber);
    }),
  );
}

function endSpan(span: ServerSpan, { log, disconnected }: MessageCall): void {
  const { code } = log;
  if (typeof code === 'string') span.fail(code);
  if (disconnected.aborted) span.setAttributes({ 'channel_transcripts.left': true });
  span.end();
}
