import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

/** The key of the services whose webhooks are tested. */
export const WEBHOOK_SECRET_KEY = ['a-key-for-the-secrets-of-tests-4f8a'];

export interface ReceivedMessage {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A receiver of webhooks on loopback. */
export interface Receiver {
  url: string;
  port: number;
  received: ReceivedMessage[];
  /** The number of connections that were opened to it. */
  connections: () => number;
  /** How it responds; 204 by default. */
  respond: (response: ServerResponse, message: ReceivedMessage) => void;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const message = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
      receiver.received.push(message);
      receiver.respond(response, message);
    });
  });
  server.on('connection', () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    received: [],
    connections: () => connections,
    respond: (response) => void response.writeHead(204).end(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}

/** The content of a message whose signature the reference library accepts; throws when it does not. */
export function verified({ body, headers }: ReceivedMessage, secret: string): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}

export function idOf({ headers }: ReceivedMessage): string {
  return String(headers['webhook-id']);
}

/** Whether a message is signed with a secret. */
export function isSigned(message: ReceivedMessage, secret: string): boolean {
  try {
    return verified(message, secret) !== undefined;
  } catch {
    return false;
  }
}
