import { SpanKind, SpanStatusCode, trace, type Attributes } from '@opentelemetry/api';
import {
  EventSubscriber,
  type AfterQueryEvent,
  type BeforeQueryEvent,
  type DataSource,
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

  afterQuery({ queryRunner, query, success, dataSource }: AfterQueryEvent): void {
    const startTime = this.startTimes.get(queryRunner);
    if (startTime === undefined || !trace.getActiveSpan()) return;
    const operation = /^\s*([A-Za-z]+)/.exec(query)?.[1]?.toUpperCase() ?? 'QUERY';
    const text = query.replace(/\s+/g, ' ').trim();
    const attributes = { ...serverOf(dataSource), 'db.operation.name': operation, 'db.query.text': text };
    const span = tracer.startSpan(operation, { kind: SpanKind.CLIENT, attributes, startTime });
    if (!success) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  }
}

function serverOf({ options }: DataSource): Attributes {
  if (options.type !== 'postgres') return {};
  const { hostname, port, pathname, searchParams } = new URL(options.url ?? '');
  return {
    'db.system.name': 'postgresql',
    'db.namespace': decodeURIComponent(pathname.slice(1)),
    // The embedded database listens on a Unix socket in a directory.
    'server.address': searchParams.get('host') ?? hostname,
    'server.port': Number(searchParams.get('port') ?? (port || 5432)),
  };
}
