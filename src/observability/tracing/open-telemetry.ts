import {
  context,
  diag,
  DiagLogLevel,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Span as OpenSpan,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { NO_SPAN, type Attributes, type ServerSpan, type Span, type Tracer } from './tracer.js';

const SERVICE_NAME = 'channel-transcripts';
/** A collector that does not answer must not hold up the end of the process. */
const LAST_EXPORT_MS = 2_000;

const spans = trace.getTracer(SERVICE_NAME);

/** A tracer that sends to an OpenTelemetry collector, and what ends it. */
export interface RunningTracer extends Tracer {
  /** Sends what is left, for two seconds at the most; never rejects. */
  stop(): Promise<void>;
}

/**
 * Starts sending spans by OTLP over HTTP. Where to, what and how often is said by the standard OTEL_ variables, which
 * OpenTelemetry reads itself.
 *
 * @param onFailure called with the reason why spans were not sent
 * @param redact applied to every text of every span
 */
export function startOpenTelemetry(
  onFailure: (cause: string) => void,
  redact: (text: string) => string,
): RunningTracer {
  const emit = (...words: unknown[]): void => onFailure(words.map(String).join(' '));
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: emit, warn: emit, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': SERVICE_NAME }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  return new OpenTelemetryTracer(provider, onFailure, redact);
}

class OpenTelemetryTracer implements RunningTracer {
  constructor(
    private readonly provider: NodeTracerProvider,
    private readonly onFailure: (cause: string) => void,
    private readonly redact: (text: string) => string,
  ) {}

  serve<T>(name: string, headers: unknown, attributes: Attributes, work: (span: ServerSpan) => T): T {
    const caller = propagation.extract(ROOT_CONTEXT, headers);
    const span = spans.startSpan(name, { kind: SpanKind.SERVER, attributes: this.masked(attributes) }, caller);
    const server: ServerSpan = {
      ...this.recorded(span),
      rename: (to) => void span.updateName(this.redact(to)),
      end: () => span.end(),
    };
    return context.with(trace.setSpan(caller, span), () => work(server));
  }

  inSpan<T>(
    kind: 'internal' | 'client',
    name: string,
    attributes: Attributes,
    work: (span: Span) => Promise<T>,
  ): Promise<T> {
    const spanKind = kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL;
    // What the service does by itself, and what a probe has it do, is no trace of its own.
    if (!trace.getActiveSpan()) return work(NO_SPAN);
    return spans.startActiveSpan(name, { kind: spanKind, attributes: this.masked(attributes) }, async (span) => {
      const own = this.recorded(span);
      try {
        return await work(own);
      } catch (error) {
        own.fail(typeOf(error));
        throw error;
      } finally {
        span.end();
      }
    });
  }

  traceId(): string | undefined {
    return trace.getActiveSpan()?.spanContext().traceId;
  }

  async stop(): Promise<void> {
    const { onFailure } = this;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        onFailure(`The collector did not take the last spans within ${LAST_EXPORT_MS} ms.`);
        resolve();
      }, LAST_EXPORT_MS);
    });
    await Promise.race([this.provider.shutdown().catch((error: unknown) => onFailure(String(error))), late]);
    clearTimeout(timer);
  }

  private recorded(span: OpenSpan): Span {
    return {
      setAttributes: (attributes) => void span.setAttributes(this.masked(attributes)),
      fail: (type) => void span.setAttribute('error.type', this.redact(type)).setStatus({ code: SpanStatusCode.ERROR }),
    };
  }

  private masked(attributes: Attributes): Attributes {
    return Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [name, typeof value === 'string' ? this.redact(value) : value]),
    );
  }
}

/** The code of an error of ours, of PostgreSQL or of Node; a message could hold anything. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
