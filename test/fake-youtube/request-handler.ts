import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { invalidArgument, RenderedBodies, type RenderedBody, send } from './rendered-bodies.js';
import { respond } from './respond.js';
import type { Budgets } from './budgets.js';
import { handleControl, type Controls, isControl } from './control.js';
import { applyFault } from './faults/apply-fault.js';
import type { Fault, FaultRegistry, FaultKind } from './faults/fault-registry.js';
import type { Holds } from './faults/held-requests.js';
import { type Incoming, readIncoming } from './incoming-request.js';
import type { RecordedRequest, RequestLog } from './request-log.js';
import type { ServerState } from './settings.js';

const REQUEST_BYTES_MAX = 1_048_576;
/** Faults where this server, not the client, breaks the connection. */
const BROKEN_HERE: ReadonlySet<FaultKind> = new Set(['reset', 'cut', 'half-closed']);

/** For all servers of this process: the key of a body names everything that it depends on. */
const bodies = new RenderedBodies();

/** Handles each request in the same steps: read, record, hold, delay, then respond or apply a fault. */
export class RequestHandler {
  constructor(
    private readonly state: ServerState,
    private readonly faults: FaultRegistry,
    private readonly budgets: Budgets,
    private readonly holds: Holds,
    private readonly log: RequestLog,
    private readonly controls: Controls,
  ) {}

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const body = await bodyOf(request);
      const path = request.url ?? '/';
      if (isControl(path)) return handleControl(request, body, response, this.controls);
      await this.serve(
        readIncoming(request.method ?? 'GET', path, request.headers, body, request.socket.remoteAddress ?? ''),
        response,
      );
    } catch (error) {
      response.destroy();
      // A client that disconnects is expected; anything else is a bug here and must not look like an injected fault.
      if (!request.destroyed && !(error instanceof Error && error.name === 'AbortError')) {
        process.stderr.write(`fake-youtube: ${error instanceof Error ? error.stack : String(error)}\n`);
      }
    }
  }

  private async serve(incoming: Incoming, response: ServerResponse): Promise<void> {
    const record = this.log.arrive(incoming);
    const closed = this.watch(record, response);
    await this.holds.pass(incoming, closed);
    const { latencyMs } = this.state.settings;
    if (latencyMs > 0) await sleep(latencyMs, undefined, { signal: closed });
    if (closed.aborted) return;
    const fault = this.faultFor(incoming);
    const rendered = this.render(incoming);
    if (!fault) return send(response, rendered);
    record.fault = fault.kind;
    await applyFault(fault, incoming, this.state, rendered, response, closed);
  }

  private faultFor(incoming: Incoming): Fault | undefined {
    const fault = this.faults.choose(incoming);
    if (fault) return fault;
    const refusal = this.budgets.refuse(this.state.settings.budgets, incoming);
    return refusal && { kind: refusal };
  }

  /** Records how the request ends. The signal aborts when the connection closes before the response is complete. */
  private watch(record: RecordedRequest, response: ServerResponse): AbortSignal {
    const closed = new AbortController();
    response.once('close', () => {
      const brokenHere = record.fault !== null && BROKEN_HERE.has(record.fault);
      const status = response.headersSent ? response.statusCode : null;
      this.log.finish(record, { status, aborted: !response.writableFinished && !brokenHere });
      // After a complete response nothing waits for the signal, and the error that an abort creates takes time.
      if (!response.writableFinished) closed.abort();
    });
    return closed.signal;
  }

  private render(incoming: Incoming): RenderedBody {
    const acceptsGzip = /\bgzip\b/.test(String(incoming.headers['accept-encoding'] ?? ''));
    const ignored = incoming.client !== null && this.state.settings.fieldsIgnored.includes(incoming.client);
    const rendered = bodies.write(respond(incoming, this.state), ignored ? null : incoming.fields, acceptsGzip);
    const result = rendered ?? bodies.write(invalidArgument(), null, acceptsGzip);
    if (!result) throw new Error('A response without a field mask can always be rendered');
    return result;
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > REQUEST_BYTES_MAX) throw new Error('The request is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
