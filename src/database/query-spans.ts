import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  EventSubscriber,
  type AfterQueryEvent,
  type BeforeQueryEvent,
  type EntitySubscriberInterface,
  type QueryRunner,
} from 'typeorm';

const tracer = trace.getTracer('channel-transcripts');

/** Adds a span for every query to the active trace. It contains the text with placeholders (`$1`), never the values. */
@EventSubscriber()
export class QuerySpans implements EntitySubscriberInterface {
  private readonly startTimes = new WeakMap<QueryRunner, number>();

  beforeQuery({ queryRunner }: BeforeQueryEvent): void {
    if (trace.getActiveSpan()) this.startTimes.set(queryRunner, Date.now());
  }

  afterQuery({ queryRunner, query, success }: AfterQueryEvent): void {
    const startTime = this.startTimes.get(queryRunner);
    if (startTime === undefined || !trace.getActiveSpan()) return;
    const text = query.replace(/\s+/g, ' ').trim();
    const attributes = { 'db.system.name': 'postgresql', 'db.query.text': text };
    const name = text.split(' ', 1)[0]?.toUpperCase() ?? '';
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes, startTime });
    if (!success) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  }
}
