import { type FaultKind, matches, type RequestMatch } from './faults/fault-registry.js';
import type { Incoming } from './incoming-request.js';

export interface RecordedRequest extends Omit<Incoming, 'url' | 'body'> {
  /** Null until the response has started. */
  status: number | null;
  fault: FaultKind | null;
  /** The client disconnected before the response was complete. */
  aborted: boolean;
}

const RECORDED_MAX = 20_000;
const WAIT_MS = 60_000;

/** The requests received since the last reset, at most the latest 20,000. */
export class RequestLog {
  list: RecordedRequest[] = [];
  /** Requests received whose response is neither complete nor aborted. */
  inFlight = 0;
  inFlightMax = 0;
  /** Currently open connections, and the maximum so far. */
  sockets = 0;
  socketsMax = 0;
  private readonly watchers = new Set<() => void>();

  get total(): number {
    return this.list.length;
  }

  /** Number of requests aborted by the client. */
  get aborted(): number {
    return this.list.filter((request) => request.aborted).length;
  }

  count(match: RequestMatch = {}): number {
    return this.list.filter((request) => matches(match, request)).length;
  }

  /** Resolves as soon as the condition is true; rejects after `waitMs`. */
  async until(condition: (log: RequestLog) => boolean, waitMs = WAIT_MS): Promise<void> {
    if (condition(this)) return;
    await new Promise<void>((resolve, reject) => {
      const done = (settle: () => void): void => {
        this.watchers.delete(watcher);
        clearTimeout(timer);
        settle();
      };
      const watcher = (): void => {
        if (condition(this)) done(resolve);
      };
      const timer = setTimeout(
        () => done(() => reject(new Error(`Not within ${waitMs} ms: ${String(condition)}`))),
        waitMs,
      );
      this.watchers.add(watcher);
    });
  }

  arrive(incoming: Incoming): RecordedRequest {
    const { kind, method, path, client, clientVersion, videoId, channelId, fields, visitorData, egress, headers } =
      incoming;
    const request: RecordedRequest = {
      kind,
      method,
      path,
      client,
      clientVersion,
      videoId,
      channelId,
      fields,
      visitorData,
      egress,
      headers,
      status: null,
      fault: null,
      aborted: false,
    };
    this.list.push(request);
    if (this.list.length > RECORDED_MAX) this.list.shift();
    this.inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight);
    this.changed();
    return request;
  }

  finish(request: RecordedRequest, end: { status: number | null; aborted: boolean }): void {
    Object.assign(request, end);
    this.inFlight -= 1;
    this.changed();
  }

  connect(): void {
    this.sockets += 1;
    this.socketsMax = Math.max(this.socketsMax, this.sockets);
    this.changed();
  }

  disconnect(): void {
    this.sockets -= 1;
    this.changed();
  }

  /** Deletes the recorded requests; open requests and connections stay counted. */
  clear(): void {
    this.list = [];
    this.inFlightMax = this.inFlight;
    this.socketsMax = this.sockets;
  }

  private changed(): void {
    for (const watcher of [...this.watchers]) watcher();
  }
}
