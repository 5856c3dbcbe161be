import { ClientProxyFactory, Transport, type ClientProxy } from '@nestjs/microservices';
import type { TestService } from '../harness/service.js';

/** The parts of an event that the tests use. */
export interface MessageEvent {
  type: string;
  channel?: any;
  result?: any;
  summary?: any;
}

/** The reply to a message: its events, and the error that ended them. */
export interface MessageReply {
  events: MessageEvent[];
  error: any;
}

/** The address at which a service accepts messages, from its log. */
export function messageUrl(service: TestService): URL {
  const url = service.logs.map((line) => /"event":"messages_listening","url":"([^"]+)"/.exec(line)?.[1]).find(Boolean);
  return new URL(url ?? 'none:');
}

/** A Nest client of the service, over the transport that its address names. */
export function clientOf(url: URL): ClientProxy {
  return url.protocol === 'nats:'
    ? ClientProxyFactory.create({ transport: Transport.NATS, options: { servers: [url.host] } })
    : ClientProxyFactory.create({
        transport: Transport.TCP,
        options: { host: url.hostname, port: Number(url.port) },
      });
}

/** Sends a message and waits for the end of its reply. */
export function request(
  client: ClientProxy,
  message: unknown,
  pattern = 'channels.transcripts',
): Promise<MessageReply> {
  const events: MessageEvent[] = [];
  return new Promise((resolve) => {
    client.send<MessageEvent>(pattern, message).subscribe({
      next: (event) => void events.push(event),
      error: (error: unknown) => resolve({ events, error }),
      complete: () => resolve({ events, error: undefined }),
    });
  });
}
