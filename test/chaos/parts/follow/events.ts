import { idOf, startReceiver, type ReceivedMessage, type Receiver } from '../../../webhooks/receiver.js';
import { parseJson } from '../../../harness/http-request.js';
import type { RandomSource } from '../../harness/random.js';
import { at } from '../../harness/transcripts.js';

export interface UploadEvent {
  id: string;
  type: string;
  subscriptionId: string;
  videoId: string;
  /** Where the feed goes on with it. */
  after: number;
}

/** A delivery is tried eight times, some of which may be those of killed processes. */
const FAILURES_MAX = 2;

/** A receiver of webhooks that fails at times, and what it was sent. */
export class EventLog {
  /** Whether it fails now. */
  fails = false;
  failures = 0;
  private readonly failed = new Map<string, number>();

  private constructor(
    private readonly receiver: Receiver,
    private readonly random: RandomSource,
  ) {
    receiver.respond = (response, message) => {
      const times = this.failed.get(idOf(message)) ?? 0;
      if (!this.fails || times >= FAILURES_MAX) return void response.writeHead(204).end();
      this.failed.set(idOf(message), times + 1);
      this.failures += 1;
      if (this.random.often(0.5)) response.writeHead(503).end();
      else response.destroy();
    };
  }

  static async start(random: RandomSource): Promise<EventLog> {
    return new EventLog(await startReceiver(), random);
  }

  get url(): string {
    return this.receiver.url;
  }

  /** The events of a subscription, each once however often it was delivered. */
  of(subscriptionId: string): UploadEvent[] {
    const events = new Map(this.receiver.received.map((message) => [idOf(message), eventOf(message)]));
    return [...events.values()].filter((event) => event.subscriptionId === subscriptionId);
  }

  close(): Promise<void> {
    return this.receiver.close();
  }
}

function eventOf(message: ReceivedMessage): UploadEvent {
  const body = parseJson(message.body);
  return {
    id: idOf(message),
    type: String(at(body, 'type')),
    subscriptionId: String(at(body, 'data', 'subscriptionId')),
    videoId: String(at(body, 'data', 'videoId')),
    after: Number(/after=(\d+)/.exec(String(at(body, 'data', 'results')))?.[1]),
  };
}
