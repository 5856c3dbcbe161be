import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
  type SpanOptions,
} from '@opentelemetry/api';

/** Spans are recorded only after `startTracing`; without it OpenTelemetry's API does nothing. */
const tracer = trace.getTracer('channel-transcripts');

/** Runs work in a child span of the active span; a rejection marks the span as failed. */
export function inSpan<T>(
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<T>,
  options: SpanOptions = {},
): Promise<T> {
  return tracer.startActiveSpan(name, { attributes, ...options }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      failSpan(span, errorType(error));
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Runs background work in a trace of its own. */
export function inRootSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return inSpan(name, attributes, work, { root: true, kind: SpanKind.CONSUMER });
}

/**
 * Runs the work of an incoming request in a server span, a child of the span that the request's headers name. The caller
 * ends the span.
 *
 * @param headers with the W3C trace context, if the sender has one
 */
export function inServerSpan<T>(name: string, headers: unknown, attributes: Attributes, work: (span: Span) => T): T {
  const parent = propagation.extract(ROOT_CONTEXT, headers);
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
  return context.with(trace.setSpan(parent, span), () => work(span));
}

/** Marks a span as failed. @param type a stable identifier such as an error code */
export function failSpan(span: Span, type: string): void {
  span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
}

/** The ID of the active trace; undefined outside of a trace and without tracing. */
export function activeTraceId(): string | undefined {
  return trace.getActiveSpan()?.spanContext().traceId;
}

/** The code of a domain, PostgreSQL or Node error, else its name; a message could contain anything. */
function errorType(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
