import { promisify } from 'node:util';
import { brotliDecompress, gunzip, type ZlibOptions } from 'node:zlib';
import { type Dispatcher, request as sendRequest } from 'undici';

/** The origin of every request that the adapter composes itself. */
export const YOUTUBE_ORIGIN = 'https://www.youtube.com';

/** Hosts that a URL from the platform may have. No other host is ever contacted. */
const ALLOWED_HOSTS: ReadonlySet<string> = new Set(['www.youtube.com', 'youtube.com', 'm.youtube.com']);

/** Hosts that suspected bots are redirected to; clients without a consent cookie are redirected to CONSENT_HOST. */
const CAPTCHA_HOSTS: ReadonlySet<string> = new Set([
  'www.google.com',
  'google.com',
  'ipv4.google.com',
  'ipv6.google.com',
]);
const CONSENT_HOST = /^consent\.(?:[a-z]+\.)?(?:youtube|google)\.[a-z.]{2,6}$/;

type AddressKind = 'allowed' | 'captcha' | 'consent' | 'foreign';

/** Classifies a URL from the platform. Only `allowed` may be fetched. */
export function addressKind(url: URL): AddressKind {
  if (url.protocol !== 'https:' || url.port !== '' || url.username !== '' || url.password !== '') return 'foreign';
  if (ALLOWED_HOSTS.has(url.hostname)) return 'allowed';
  if (CONSENT_HOST.test(url.hostname)) return 'consent';
  return CAPTCHA_HOSTS.has(url.hostname) && url.pathname.startsWith('/sorry') ? 'captcha' : 'foreign';
}

/**
 * The URL that is contacted. A base URL (an egress gateway, or the fake YouTube) replaces the platform's origin and
 * prefixes its own path: `https://gateway/yt` + `/api/timedtext?v=…`.
 */
export function contactedUrl(url: URL, baseUrl: URL | null): URL {
  if (!baseUrl) return url;
  return new URL(`${baseUrl.pathname.replace(/(?<!\/)\/+$/, '')}${url.pathname}${url.search}`, baseUrl.origin);
}

/** Largest body that is read, in bytes after decompression. A recorded playlist page has 0.5 MB, the player script 2.5 MB. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;

/** Declines consent in advance; without it a European address gets a consent page instead of a response. */
const CONSENT_COOKIE = 'SOCS=CAE=';

const DECODERS = new Map([
  ['gzip', promisify<Buffer, ZlibOptions, Buffer>(gunzip)],
  ['br', promisify<Buffer, ZlibOptions, Buffer>(brotliDecompress)],
]);

export interface OutgoingRequest {
  /** An address of the platform, also when `YOUTUBE_BASE_URL` receives the request. */
  url: URL;
  headers: Readonly<Record<string, string>>;
  /** A request with a body is a POST, else a GET. */
  body?: string;
  /** Largest response body, in bytes after decompression; 4 MB by default. */
  bodyBytesMax?: number;
}

/** A response with a decoded body, not classified yet. */
interface RawResponse {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: string;
}

/** One request and its response, as they were sent and received. */
export interface Exchange {
  /** As in `PendingRequest`. */
  kind: string;
  client: string;
  outgoing: OutgoingRequest;
  response: RawResponse;
}

/** Receives every exchange with the platform. Only the doctor provides one. */
export abstract class ExchangeListener {
  abstract exchanged(exchange: Exchange): void;
}

/** The body cannot be read: too large, cut short, an unknown encoding, or not UTF-8. The message names what was expected. */
export class UnreadableBodyError extends Error {}

/**
 * Sends one request and reads its response under a size limit.
 *
 * @param baseUrl receives the request instead of the URL's own host; null for that host itself
 * @throws UnreadableBodyError, or undici's error for a connection that failed
 */
export async function transfer(
  request: OutgoingRequest,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  baseUrl: URL | null,
): Promise<RawResponse> {
  const { url, headers, body, bodyBytesMax = BODY_BYTES_MAX } = request;
  const response = await sendRequest(contactedUrl(url, baseUrl), {
    dispatcher,
    signal,
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...headers, 'accept-encoding': 'gzip, br', cookie: CONSENT_COOKIE },
    body: body ?? null,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const packed = await collect(response.body, bodyBytesMax);
  const bytes = await decompress(packed, response.headers['content-encoding'], bodyBytesMax);
  return { status: response.statusCode, headers: response.headers, body: decodeUtf8(bytes) };
}

async function collect(body: Dispatcher.ResponseData['body'], bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop early destroys the stream and its connection, so the rest of the body is not read.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > bytesMax) throw new UnreadableBodyError(`a body of at most ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

async function decompress(body: Buffer, encoding: string | string[] | undefined, bytesMax: number): Promise<Buffer> {
  const name = String(encoding ?? 'identity')
    .trim()
    .toLowerCase();
  if (name === 'identity' || body.length === 0) return body;
  const decode = DECODERS.get(name);
  if (!decode) throw new UnreadableBodyError('an accepted content encoding');
  try {
    // A text in one step takes half the time of steps of the default 16 KB.
    return await decode(body, { maxOutputLength: bytesMax, chunkSize: 256 * 1024 });
  } catch (error) {
    throw new UnreadableBodyError(`a whole body of at most ${bytesMax} bytes`, { cause: error });
  }
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new UnreadableBodyError('text in UTF-8', { cause: error });
  }
}

/** Whether undici gave up waiting for a connection. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(UND_ERR_.*TIMEOUT|ETIMEDOUT)$/.test(String(error.code));
}
