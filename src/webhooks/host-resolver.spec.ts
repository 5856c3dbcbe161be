import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Environment } from '../config/environment.js';
import { HostResolutionError, HostResolver } from './host-resolver.js';

const TYPES = { 1: 'A', 28: 'AAAA' } as const;
const [NO_ERROR, SERVER_FAILURE, NAME_ERROR] = [0, 2, 3];

/** What the name server responds for a name and a type: the bytes of addresses, a failure, or nothing at all. */
const ZONE: Readonly<Record<string, Partial<Record<'A' | 'AAAA', number[][] | number | 'silent'>>>> = {
  'both.example': {
    A: [
      [93, 184, 215, 14],
      [10, 0, 0, 1],
    ],
    AAAA: [[0x26, 6, ...Array<number>(13).fill(0), 1]],
  },
  'only-ipv4.example': { A: [[1, 1, 1, 1]] },
  'half.example': { A: [[1, 1, 1, 1]], AAAA: SERVER_FAILURE },
  'broken.example': { A: SERVER_FAILURE, AAAA: SERVER_FAILURE },
  'silent.example': { A: 'silent', AAAA: 'silent' },
  'empty.example': {},
};

let server: Socket;
let resolver: HostResolver;

beforeAll(async () => {
  server = createSocket('udp4');
  server.on('message', (query, { port, address }) => {
    const response = respond(query);
    if (response) server.send(response, port, address);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  resolver = new HostResolver(new Environment());
  resolver.nameServers = [`127.0.0.1:${server.address().port}`];
});
afterAll(() => void server.close());

function respond(query: Buffer): Buffer | undefined {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const type = query.readUInt16BE(at + 1);
  const zone = ZONE[labels.join('.').toLowerCase()];
  const found = zone?.[TYPES[type as keyof typeof TYPES]] ?? [];
  if (found === 'silent') return undefined;
  const addresses = typeof found === 'number' ? [] : found;
  const code = zone === undefined ? NAME_ERROR : typeof found === 'number' ? found : NO_ERROR;
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  const answers = addresses.map((bytes) => {
    return Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]);
  });
  return Buffer.concat([head, question, ...answers]);
}

const resolve = (host: string, waitMs = 5_000): Promise<string[]> =>
  resolver.resolve(host, AbortSignal.timeout(waitMs));

describe('HostResolver', () => {
  it('returns every IPv4 and IPv6 address of a name', async () => {
    expect(await resolve('both.example')).toEqual(['93.184.215.14', '10.0.0.1', '2606::1']);
    expect(await resolve('only-ipv4.example')).toEqual(['1.1.1.1']);
    expect(await resolve('half.example')).toEqual(['1.1.1.1']);
  });

  it.each(['127.0.0.1', '::1', '2606:4700::1'])('returns %s itself', async (address) => {
    expect(await resolve(address)).toEqual([address]);
  });

  it.each([
    ['unknown.example', true],
    ['empty.example', true],
    ['broken.example', false],
  ])('of %s reports whether it has no address: %p', async (host, doesNotExist) => {
    const error: unknown = await resolve(host).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(HostResolutionError);
    expect(error).toMatchObject({ doesNotExist });
  });

  it('ends with the signal when the name servers do not respond', async () => {
    const failed = { doesNotExist: false, cause: { code: 'ECANCELLED' } };
    await expect(resolve('silent.example', 200)).rejects.toMatchObject(failed);
  });

  it('does not take name servers that refuse connections for a name without addresses', async () => {
    const closed = createSocket('udp4').bind(0, '127.0.0.1');
    await once(closed, 'listening');
    const offline = new HostResolver(new Environment());
    offline.nameServers = [`127.0.0.1:${closed.address().port}`];
    closed.close();
    const failed = { doesNotExist: false, cause: { code: 'ECONNREFUSED' } };
    await expect(offline.resolve('both.example', AbortSignal.timeout(5_000))).rejects.toMatchObject(failed);
  });

  it('knows the names of the machine when private addresses are allowed', async () => {
    const environment = Object.assign(new Environment(), { WEBHOOK_ALLOW_PRIVATE: true });
    expect(await new HostResolver(environment).resolve('localhost', AbortSignal.timeout(5_000))).toContain('127.0.0.1');
  });
});
