import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { Injectable } from '@nestjs/common';
import { Agent, request, type Dispatcher } from 'undici';
import { Environment } from '../config/environment.js';
import { isPublicAddress, parseWebhookUrl } from './webhook-url.js';
import { signedHeaders, type WebhookMessage } from './webhook-secrets.js';
import { InvalidUrlError } from './webhook.js';

const USER_AGENT = 'channel-transcripts-webhooks';
/** How much of a response body is read, so that an ordinary receiver can finish it; the content is discarded. */
const BODY_BYTES_MAX = 64 * 1024;
const BODY_TIMEOUT_MS = 1_000;
const GONE = 410;
/** There is no such name, or it has no address. */
const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA']);
const ERROR_CODE = /^[A-Z][A-Z0-9_]{1,60}$/;
const TLS_CODE = /^(?:ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/;

const TIMED_OUT = new Error('The receiver did not respond in time.');

/** The result of one attempt. */
export interface Attempt {
  outcome: 'succeeded' | 'failed' | 'gone';
  /** The HTTP status; null when there was no response. */
  status: number | null;
  /** Why it failed, for the owner of the webhook. */
  error: string | null;
  durationMs: number;
}

/** The host of a webhook has an address that is not public. */
export class PrivateAddressError extends Error {
  constructor() {
    super('The host resolves to an address that is not public.');
    this.name = 'PrivateAddressError';
  }
}

/** A host has no address, or its name servers did not say. */
export class HostResolutionError extends Error {
  /** Whether the name servers responded that there is no address. */
  readonly doesNotExist: boolean;

  constructor(cause: unknown) {
    super('The host cannot be resolved.', { cause });
    this.name = 'HostResolutionError';
    this.doesNotExist = NO_ADDRESS.has(errorCode(cause));
  }
}

/** Sends messages to receivers, and only to the addresses that were checked. */
@Injectable()
export class WebhookSender {
  /** Resolves the host of a webhook; tests replace it. */
  lookup: (host: string) => Promise<readonly { address: string; family: number }[]> = (host) =>
    lookup(host, { all: true });

  /** For one attempt, from the look-up of the host to the head of the response; tests shorten it. */
  timeoutMs = 15_000;

  constructor(private readonly environment: Environment) {}

  /**
   * The addresses of a host, all of them allowed.
   *
   * @throws HostResolutionError, PrivateAddressError
   */
  async addressesOf(host: string): Promise<readonly { address: string; family: number }[]> {
    const literal = isIP(host) === 0 ? undefined : [{ address: host, family: isIP(host) }];
    const addresses =
      literal ??
      (await this.lookup(host).catch((cause: unknown) => {
        throw new HostResolutionError(cause);
      }));
    const { WEBHOOK_ALLOW_PRIVATE } = this.environment;
    if (!WEBHOOK_ALLOW_PRIVATE && !addresses.every(({ address }) => isPublicAddress(address)))
      throw new PrivateAddressError();
    return addresses;
  }

  /**
   * Sends a message once. Redirects are not followed: they are failures, as is every status but 2xx. The rules for URLs are
   * checked again, because the webhook may be older than the configuration.
   *
   * @param secrets one signature for each
   * @param aborted ends the attempt early
   * @throws the reason of `aborted`
   */
  async send(
    url: string,
    message: WebhookMessage,
    secrets: readonly Buffer[],
    aborted?: AbortSignal,
  ): Promise<Attempt> {
    const startedAtMs = performance.now();
    const result = (outcome: Attempt['outcome'], status: number | null, error: string | null): Attempt => {
      return { outcome, status, error, durationMs: Math.round(performance.now() - startedAtMs) };
    };
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(TIMED_OUT), this.timeoutMs);
    const end = (): void => ending.abort(aborted?.reason);
    aborted?.addEventListener('abort', end, { once: true });
    try {
      aborted?.throwIfAborted();
      const checked = parseWebhookUrl(url, this.environment.WEBHOOK_ALLOW_PRIVATE);
      const status = await this.post(checked, message, secrets, ending.signal);
      if (status >= 200 && status < 300) return result('succeeded', status, null);
      if (status === GONE)
        return result('gone', status, 'The receiver responded with 410: it wants no more deliveries.');
      return result('failed', status, statusError(status));
    } catch (error) {
      aborted?.throwIfAborted();
      return result('failed', null, errorText(ending.signal.aborted ? TIMED_OUT : error));
    } finally {
      clearTimeout(timer);
      aborted?.removeEventListener('abort', end);
    }
  }

  /**
   * The look-up of the connection itself, so that it is made to an address that was checked, whatever the name resolves to
   * a moment later. TLS still verifies the name. The address in a URL is not looked up: `parseWebhookUrl` checks it.
   */
  private readonly checkedLookup: LookupFunction = (host, options, callback) => {
    this.addressesOf(host).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all || !first) callback(null, [...addresses]);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };

  /** @returns the status of the response */
  private async post(
    url: URL,
    message: WebhookMessage,
    secrets: readonly Buffer[],
    signal: AbortSignal,
  ): Promise<number> {
    // One agent for each attempt: a connection is never reused for a name that resolves to other addresses meanwhile.
    const dispatcher = new Agent({ connect: { lookup: this.checkedLookup, timeout: this.timeoutMs } });
    try {
      const response = await request(url, {
        dispatcher,
        signal,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': USER_AGENT,
          ...signedHeaders(message, secrets, Date.now()),
        },
        body: message.body,
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      await discard(response.body);
      return response.statusCode;
    } finally {
      await dispatcher.destroy();
    }
  }
}

async function discard(body: Dispatcher.ResponseData['body']): Promise<void> {
  // The status decides, so a body that is too large, too slow or broken is not a failure.
  await body.dump({ limit: BODY_BYTES_MAX, signal: AbortSignal.timeout(BODY_TIMEOUT_MS) }).catch(() => undefined);
}

function statusError(status: number): string {
  if (status >= 300 && status < 400) return `The receiver responded with ${status}; redirects are not followed.`;
  return `The receiver responded with ${status}.`;
}

function errorText(error: unknown): string {
  const isOwn = [HostResolutionError, PrivateAddressError, InvalidUrlError].some((type) => error instanceof type);
  if ((error === TIMED_OUT || isOwn) && error instanceof Error) return error.message;
  const code = errorCode(error);
  if (code === 'ECONNREFUSED') return 'The connection was refused.';
  if (TLS_CODE.test(code)) return `The TLS connection failed (${code}).`;
  return ERROR_CODE.test(code) ? `The connection failed (${code}).` : 'The connection failed.';
}

/** The code of an error of Node.js or undici; empty when it has none. */
function errorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}
