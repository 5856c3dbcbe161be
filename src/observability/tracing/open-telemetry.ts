import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { VERSION } from '../../config/package.js';
import { withTimeout } from '../../domain/waiting.js';

const SERVICE_NAME = 'channel-transcripts';
/** An unresponsive collector must not delay the end of the process for longer. */
const SHUTDOWN_TIMEOUT_MS = 2_000;

/**
 * Exports spans by OTLP over HTTP. The SDK reads endpoint, headers, sampler and resource from the standard OTEL_ variables.
 *
 * @param onFailure called with the reason when spans could not be exported
 * @returns exports the remaining spans, for two seconds at most; never rejects
 */
export function startTracing(onFailure: (cause: string) => void): () => Promise<void> {
  const report = (...parts: unknown[]): void => onFailure(parts.map(String).join(' '));
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': SERVICE_NAME, 'service.version': VERSION }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  return async () => {
    const sent = provider.shutdown().catch((error: unknown) => onFailure(String(error)));
    const isDone = await withTimeout(
      sent.then(() => true),
      SHUTDOWN_TIMEOUT_MS,
    );
    if (!isDone) onFailure(`The collector did not accept the last spans within ${SHUTDOWN_TIMEOUT_MS} ms.`);
  };
}
