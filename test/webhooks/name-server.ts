import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { Resolver } from 'node:dns/promises';
import ipaddr from 'ipaddr.js';
import type { WebhookResolver } from '../../src/webhooks/webhook-url.js';

const TYPES: Readonly<Record<number, 'ipv4' | 'ipv6'>> = { 1: 'ipv4', 28: 'ipv6' };
const NAME_ERROR = 3;

/** A DNS server on loopback. */
export interface NameServer {
  /** The addresses of names. It responds to no query for a name without addresses, and does not know any other name. */
  names: Record<string, string[]>;
  /** The names that were asked for. */
  asked: string[];
  /** The most look-ups that ran at the same time. */
  runningMax: () => number;
  /** Lets a resolver ask this server. */
  serve(resolver: WebhookResolver): void;
  close(): void;
}

export async function startNameServer(): Promise<NameServer> {
  let running = 0;
  let runningMax = 0;
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port }) => {
    const { name, end } = readName(query);
    server.asked.push(name);
    const known = server.names[name];
    if (known?.length === 0) return;
    socket.send(responseTo(query, end, known), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const server: NameServer = {
    names: {},
    asked: [],
    runningMax: () => runningMax,
    serve: (resolver) => {
      resolver.openResolver = () => {
        // It does not end by itself: the service ends every look-up.
        const opened = new Resolver({ timeout: 60_000, tries: 1 });
        opened.setServers([`127.0.0.1:${socket.address().port}`]);
        const resolve4 = async (host: string): Promise<string[]> => {
          running += 1;
          runningMax = Math.max(runningMax, running);
          return opened.resolve4(host).finally(() => (running -= 1));
        };
        const resolve6 = (host: string): Promise<string[]> => opened.resolve6(host);
        return Object.assign(new Resolver(), { resolve4, resolve6, cancel: () => opened.cancel() });
      };
    },
    close: () => void socket.close(),
  };
  return server;
}

/** The name of the question, which begins after the header of 12 bytes, and where its type and class begin. */
function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

/** @param known undefined for a name that does not exist */
function responseTo(query: Buffer, nameEnd: number, known: readonly string[] | undefined): Buffer {
  const kind = TYPES[query.readUInt16BE(nameEnd)];
  const answers = (known ?? [])
    .map((text) => ipaddr.parse(text))
    .filter((address) => address.kind() === kind)
    .map((address) => {
      const bytes = Buffer.from(address.toByteArray());
      const record = Buffer.alloc(12);
      // The name of the question, its type and class, no time to live.
      record.writeUInt16BE(0xc00c, 0);
      query.copy(record, 2, nameEnd, nameEnd + 4);
      record.writeUInt16BE(bytes.length, 10);
      return Buffer.concat([record, bytes]);
    });
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | (known ? 0 : NAME_ERROR), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers.length, 6);
  return Buffer.concat([header, query.subarray(12, nameEnd + 4), ...answers]);
}
