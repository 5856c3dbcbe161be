import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider, type Span, type SpanProcessor } from '@opentelemetry/sdk-trace-node';
import { withTimeout } from '../../domain/with-timeout.js';

const SERVICE_NAME = 'channel-transcripts';
/** An unresponsive collector must not delay the end of the process for longer. */
const SHUTDOWN_TIMEOUT_MS = 2_000;

/**
 * Exports spans by OTLP over HTTP. The SDK reads endpoint, headers, sampler and resource from the standard OTEL_ variables.
 *
 * @param onFailure called with the reason when spans could not be exported
 * @param redact applied to the name and every text attribute of every span
 * @returns exports the remaining spans, for two seconds at most; never rejects
 */
export function startTracing(
  onFailure: (cause: string) => void,
  redact: (text: string) => string,
): () => Promise<void> {
  const report = (...parts: unknown[]): void => onFailure(parts.map(String).join(' '));
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': SERVICE_NAME }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new RedactingSpanProcessor(redact), new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  return () => shutDown(provider, onFailure);
}

/** Redacts spans before the processors after it export them. */
class RedactingSpanProcessor implements SpanProcessor {
  constructor(private readonly redact: (text: string) => string) {}

  onStart(): void {}

  /** The last moment at which a span can be changed. */
  onEnding(span: Span): void {
    span.updateName(this.redact(span.name));
    for (const [name, value] of Object.entries(span.attributes)) {
      if (typeof value === 'string') span.setAttribute(name, this.redact(value));
    }
  }

  onEnd(): void {}

  forceFlush(): Promise<void> {
    return Promise.resolve();
  }

  shutdown(): Promise<void> {
    return Promise.resolve();
  }
}

async function shutDown(provider: NodeTracerProvider, onFailure: (cause: string) => void): Promise<void> {
  const sent = provider.shutdown().then(
    () => true,
    (error: unknown) => {
      onFailure(String(error));
      return true;
    },
  );
  if (!(await withTimeout(sent, SHUTDOWN_TIMEOUT_MS)))
    onFailure(`The collector did not accept the last spans within ${SHUTDOWN_TIMEOUT_MS} ms.`);
}
