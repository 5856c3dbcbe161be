import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** The parts of a span that the tests use. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: number;
  attributes: Record<string, unknown>;
  failed: boolean;
  resource: Record<string, unknown>;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}

/** The parts of an export that the tests use. */
interface TracesExport {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: {
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        name: string;
        kind: number;
        attributes: Attribute[];
        status?: { code?: number };
      }[];
    }[];
  }[];
}

/** Takes OTLP over HTTP, in JSON, as an OpenTelemetry collector does. */
export class Collector {
  readonly spans: ReceivedSpan[] = [];
  /** Everything received, unparsed. */
  text = '';

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  /** @param status of the response to every export */
  static async start(status = 200): Promise<Collector> {
    const server = createServer((request, response) => {
      void json(request).then((body) => {
        if (request.url === '/v1/traces') collector.take(body as TracesExport);
        response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const collector = new Collector(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return collector;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private take(body: TracesExport): void {
    this.text += JSON.stringify(body);
    for (const { resource, scopeSpans } of body.resourceSpans) {
      for (const { spans } of scopeSpans) {
        for (const { traceId, spanId, parentSpanId, name, kind, attributes, status } of spans) {
          this.spans.push({
            traceId,
            spanId,
            parentSpanId: parentSpanId || undefined,
            name,
            kind,
            attributes: valuesOf(attributes),
            failed: status?.code === 2,
            resource: valuesOf(resource.attributes),
          });
        }
      }
    }
  }
}

function valuesOf(attributes: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
