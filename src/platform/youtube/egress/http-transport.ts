import { promisify } from 'node:util';
import { brotliDecompress, brotliDecompressSync, gunzip, gunzipSync, inflate, inflateSync } from 'node:zlib';
import { type Dispatcher, request as sendRequest } from 'undici';
import type { ReadingContext } from '../../video-platform.js';
import type { UpstreamResponse } from './upstream-response.js';
import { classifyResponse } from './classify-response.js';
import type { FairLimiter } from './fair-limiter.js';
import { addressKind, contactedUrl } from './platform-url.js';

/** Largest body that is read, in bytes after decompression. A recorded playlist page has 0.5 MB, 10,000 cues 5 MB. */
export const BODY_BYTES_MAX = 16 * 1024 * 1024;
const REDIRECTS_MAX = 3;

/** Says "no" to the consent page beforehand; without it a European address gets a page instead of an answer. */
const CONSENT_COOKIE = 'SOCS=CAE=';

interface Decoder {
  /** Beside this thread, through a stream. */
  beside: (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;
  atOnce: (body: Buffer, options: { maxOutputLength: number }) => Buffer;
}

const GZIP: Decoder = { beside: promisify(gunzip), atOnce: gunzipSync };
const DECODERS: Readonly<Record<string, Decoder>> = {
  gzip: GZIP,
  'x-gzip': GZIP,
  deflate: { beside: promisify(inflate), atOnce: inflateSync },
  br: { beside: promisify(brotliDecompress), atOnce: brotliDecompressSync },
};

/**
 * Bodies of up to this many bytes, packed and unpacked, are unpacked at once: that takes at most about 2 ms, less than the
 * stream beside this thread costs. A long transcript or a page of a list is larger.
 */
const AT_ONCE_PACKED_MAX = 64 * 1024;
const AT_ONCE_BYTES_MAX = 512 * 1024;

export interface OutgoingRequest {
  /** The platform's own address, also when another one stands in for it. */
  url: URL;
  headers: Readonly<Record<string, string>>;
  /** A POST when it is there, else a GET. */
  body?: string;
}

export interface HttpTransportOptions {
  limiter: FairLimiter;
  baseUrl: URL | null;
  /** For one exchange, from its start to the last byte of its body. */
  timeoutMs: number;
  bodyBytesMax?: number;
}

/** What one exchange brought, before it is judged. */
interface RawResponse {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: string;
}

const EGRESS_BLOCKED: UpstreamResponse = { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: null };

class BodyError extends Error {}

/**
 * The only place that puts a request on the wire: within the limit of the process, within a time and a size, and to no
 * host but the platform's (or the one that stands in for it).
 */
export class HttpTransport {
  constructor(private readonly options: HttpTransportOptions) {}

  /**
   * Sends a request through an exit and tells what became of it. Trouble is an answer, never an exception: it rejects
   * only when `context.signal` is aborted, with its reason.
   *
   * @param isBlocked asked when the request's turn comes: whether it should not be sent any more
   */
  async send(
    request: OutgoingRequest,
    dispatcher: Dispatcher,
    context: ReadingContext,
    isBlocked: () => boolean = () => false,
  ): Promise<UpstreamResponse> {
    let current = request;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      if (addressKind(current.url) !== 'allowed')
        return { kind: 'unreadable', expected: "a URL of the platform's own" };
      const rawResponse = await this.options.limiter.run(context.fairnessKey, context.signal, () =>
        isBlocked() ? Promise.resolve(EGRESS_BLOCKED) : this.rawResponse(current, dispatcher, context.signal),
      );
      if ('kind' in rawResponse) return rawResponse;
      const location = redirection(rawResponse, current.url, this.options.baseUrl);
      if (!location) return classifyResponse(rawResponse.status, rawResponse.headers, rawResponse.body);
      const kind = addressKind(location);
      if (kind === 'captcha' || kind === 'consent') return { kind: 'blocked', reason: kind, retryAfterSeconds: null };
      if (kind === 'foreign') return { kind: 'unreadable', expected: "a redirect within the platform's own hosts" };
      current = { ...current, url: location };
    }
    return { kind: 'unreadable', expected: `at most ${REDIRECTS_MAX} redirects` };
  }

  private async rawResponse(
    request: OutgoingRequest,
    dispatcher: Dispatcher,
    signal: AbortSignal,
  ): Promise<RawResponse | UpstreamResponse> {
    signal.throwIfAborted();
    const controller = new AbortController();
    const onAbort = () => controller.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    let timedOut = false;
    // One clock over the whole exchange: an answer that drips a byte a second would reset a clock between bytes.
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, this.options.timeoutMs);
    try {
      return await this.transfer(request, dispatcher, controller.signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (timedOut || isTimeout(error)) return { kind: 'timeout' };
      if (error instanceof BodyError) return { kind: 'unreadable', expected: error.message };
      return { kind: 'network', cause: error };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    }
  }

  private async transfer(request: OutgoingRequest, dispatcher: Dispatcher, signal: AbortSignal): Promise<RawResponse> {
    const response = await sendRequest(contactedUrl(request.url, this.options.baseUrl), {
      dispatcher,
      signal,
      method: request.body === undefined ? 'GET' : 'POST',
      headers: { ...request.headers, 'accept-encoding': 'gzip, br', cookie: CONSENT_COOKIE },
      body: request.body ?? null,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const bodyBytesMax = this.options.bodyBytesMax ?? BODY_BYTES_MAX;
    const packed = await collect(response.body, bodyBytesMax);
    const bytes = await decompress(packed, response.headers['content-encoding'], bodyBytesMax);
    return { status: response.statusCode, headers: response.headers, body: decodeUtf8(bytes) };
  }
}

async function collect(body: Dispatcher.ResponseData['body'], bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop early destroys the stream and with it the connection: the rest of the body is not read.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > bytesMax) throw new BodyError(`a body of at most ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

async function decompress(body: Buffer, encoding: string | string[] | undefined, bytesMax: number): Promise<Buffer> {
  const name = (Array.isArray(encoding) ? encoding.join() : (encoding ?? '')).trim().toLowerCase();
  if (name === '' || name === 'identity' || body.length === 0) return body;
  const decode = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined;
  if (!decode) throw new BodyError('a content encoding that was asked for');
  try {
    return unpackedAtOnce(decode, body, bytesMax) ?? (await decode.beside(body, { maxOutputLength: bytesMax }));
  } catch (error) {
    throw new BodyError(`a whole body of at most ${bytesMax} bytes`, { cause: error });
  }
}

function unpackedAtOnce(decode: Decoder, body: Buffer, bytesMax: number): Buffer | undefined {
  if (body.length > AT_ONCE_PACKED_MAX) return undefined;
  try {
    return decode.atOnce(body, { maxOutputLength: Math.min(bytesMax, AT_ONCE_BYTES_MAX) });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new BodyError('text in UTF-8', { cause: error });
  }
}

/** Where a redirect leads, in the platform's own addresses; null when the answer is none. */
function redirection(rawResponse: RawResponse, from: URL, baseUrl: URL | null): URL | null {
  const { location } = rawResponse.headers;
  if (![301, 302, 303, 307, 308].includes(rawResponse.status) || typeof location !== 'string') return null;
  if (!URL.canParse(location, from.href)) return new URL('invalid:');
  const target = new URL(location, from.href);
  // A gateway may name itself in what it passes on; it is the only other host that can be meant.
  if (baseUrl && target.origin === baseUrl.origin) {
    const prefix = baseUrl.pathname.replace(/\/+$/, '');
    const path = target.pathname.startsWith(`${prefix}/`) ? target.pathname.slice(prefix.length) : target.pathname;
    return new URL(`${path}${target.search}`, from.origin);
  }
  return target;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(UND_ERR_.*TIMEOUT|ETIMEDOUT)$/.test(String(error.code));
}
