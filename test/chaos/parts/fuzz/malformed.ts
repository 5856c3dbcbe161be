import type { RandomSource } from '../../harness/random.js';
import type { FuzzRequest } from './fuzz-request.js';

/** A request id that is returned only when bytes of a body or of a refused request were parsed as a request. */
export const SMUGGLED = 'smuggled-request';

const METHODS = (
  'GET HEAD POST PUT DELETE PATCH OPTIONS TRACE CONNECT PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK SEARCH BIND REBIND ' +
  'UNBIND ACL REPORT MKACTIVITY CHECKOUT MERGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE PURGE MKCALENDAR LINK UNLINK SOURCE QUERY'
).split(' ');
const NO_METHODS = [
  'get',
  'Get',
  'GETS',
  'G',
  'FOO',
  'PRI',
  '',
  'GET\t',
  'ПОЛУЧИТЬ',
  'POST;',
  'A'.repeat(9_000),
  'DEBUG',
  'TRACK',
  'describe',
];

/** Methods, and whether Node's parser knows them. */
export function anyMethod(random: RandomSource): { method: string; known: boolean } {
  return random.often(0.8)
    ? { method: random.pick(METHODS), known: true }
    : { method: random.pick(NO_METHODS), known: false };
}

/** Requests whose boundaries two servers could parse differently, and bytes that are not HTTP. */
export function malformed(random: RandomSource, host: string, authorization: string): FuzzRequest {
  return random.often(0.6) ? framing(random, host, authorization) : garbage(random, host);
}

function framing(random: RandomSource, host: string, authorization: string): FuzzRequest {
  const smuggled = `GET /usage HTTP/1.1\r\nHost: ${host}\r\nX-Request-Id: ${SMUGGLED}\r\n\r\n`;
  const target = random.pick(['/usage', '/health/live', '/admin/organizations', '/channels/@tidewater/transcripts']);
  const method = random.pick(['GET', 'POST', 'PATCH']);
  const head = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\n`;
  const chunk = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
  const length = `Content-Length: ${smuggled.length}\r\n`;
  const chunked = 'Transfer-Encoding: chunked\r\n';
  const text = random.pick([
    `${head}${length}\r\n${smuggled}`,
    `${head}${chunked}\r\n${chunk}`,
    `${head}${chunked}${length}\r\n${chunk}`,
    `${head}${length}${chunked}\r\n0\r\n\r\n`,
    `${head}${length}${length}\r\n${smuggled}`,
    `${head}Content-Length: ${smuggled.length}, ${smuggled.length}\r\n\r\n${smuggled}`,
    `${head}Content-Length: +${smuggled.length}\r\n\r\n${smuggled}`,
    `${head}Content-Length: 0x10\r\n\r\n${smuggled}`,
    `${head}Content-Length: -1\r\n\r\n`,
    `${head}Content-Length: 99999999999999999999\r\n\r\n`,
    `${head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef`,
    `${head}Transfer-Encoding: chunked, identity\r\n\r\n${chunk}`,
    `${head}Transfer-Encoding: xchunked\r\n\r\n${chunk}`,
    `${head}Transfer-Encoding : chunked\r\n\r\n${chunk}`,
    `${head}Transfer-Encoding:\x0bchunked\r\n\r\n${chunk}`,
    `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n${chunk}`,
    `${head}${chunked}\r\nzz\r\n${smuggled}\r\n0\r\n\r\n`,
    `${head}${chunked}\r\n5;${'x'.repeat(20_000)}\r\nabcde\r\n0\r\n\r\n`,
    `${head}${chunked}\r\nffffffffffffffff\r\n${smuggled}`,
    `${head}${chunked}\r\n5\r\nabcde\r\n0\r\nX-Request-Id: trailer\r\n\r\n`,
  ]);
  return { kind: 'framing', bytes: Buffer.from(text, 'latin1'), ...unread(method) };
}

function garbage(random: RandomSource, host: string): FuzzRequest {
  const get = 'GET /usage HTTP/1.1';
  const text = random.pick([
    'GARBAGE\r\n\r\n',
    '\r\n\r\n\r\nGET\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    '\x04\x01\x00\x50\x7f\x00\x00\x01\x00',
    'SSH-2.0-x\r\n',
    `GET /usage HTTP/9.9\r\nHost: ${host}\r\n\r\n`,
    `GET /usage http/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET  /usage HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET /us age HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET /us\x00age HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET /usage\\..\\ HTTP/1.1\nHost: ${host}\n\n`,
    `${get}\r\nHost ${host}\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\n folded: yes\r\n\r\n`,
    `${get}\r\n Host: ${host}\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\nX-A: a\x00b\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\nX-A: a\rb\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\n: empty\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\nX A: b\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\nX-Big: ${'x'.repeat(70_000)}\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\n${'X: y\r\n'.repeat(3_000)}\r\n`,
    `GET /${'x'.repeat(70_000)} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `${get}\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\nHost: ${host}\r\n\r\n`,
    `${get}\r\nHost: ${host}\r\nX-Cut: of`,
    'GET /usa',
    latin1Line(random),
  ]);
  return { kind: 'garbage', bytes: Buffer.from(text, 'latin1'), ...unread('GET') };
}

function latin1Line(random: RandomSource): string {
  return `${random.bytes(1 + random.below(200)).toString('latin1')}\r\n\r\n`;
}

/** The service has to determine where the requests end and how many there are. */
function unread(method: string): Pick<FuzzRequest, 'methods' | 'whole' | 'responsesMin' | 'disconnects'> {
  return { methods: [method], whole: false, responsesMin: 1, disconnects: 'when silent' };
}
