import type { LookupFunction, Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import { Agent, buildConnector, request } from 'undici';
import { Environment } from '../config/environment.js';
import { VERSION } from '../config/package.js';
import { DomainError } from '../domain/errors.js';
import { WebhookResolver, parseWebhookUrl } from './webhook-url.js';
import { signedHeaders, type Credentials, type WebhookMessage } from './webhook-secrets.js';

const USER_AGENT = `channel-transcripts-webhooks/${VERSION}`;
/** How much is read from a receiver, so that an ordinary one can finish its response; the body is discarded. */
const READ_BYTES_MAX = 64 * 1024;
const GONE = 410;
const ERROR_CODE = /^[A-Z][A-Z0-9_]{1,60}$/;

export interface SendResult {
  outcome: 'succeeded' | 'failed' | 'gone';
  /** The HTTP status; null when there was no response. */
  status: number | null;
  /** Why it failed, for the owner of the webhook. */
  error: string | null;
  durationMs: number;
}

/** Sends messages to receivers, and only to the addresses that were checked. */
@Injectable()
export class WebhookSender {
  /** For one attempt, from the look-up of the host to the end of the response; tests shorten it. */
  timeoutMs = 15_000;

  constructor(
    private readonly environment: Environment,
    private readonly resolver: WebhookResolver,
  ) {}

  /**
   * Sends a message once. Redirects are not followed: they are failures, as is every status but 2xx. The rules for URLs are
   * checked again, because the webhook may be older than the configuration. Never rejects.
   *
   * @param organizationId of the webhook
   */
  async send(
    url: string,
    organizationId: string,
    message: WebhookMessage,
    credentials: Credentials,
  ): Promise<SendResult> {
    const startedAtMs = performance.now();
    const result = (outcome: SendResult['outcome'], status: number | null, error: string | null): SendResult => {
      return { outcome, status, error, durationMs: Math.round(performance.now() - startedAtMs) };
    };
    const timeout = AbortSignal.timeout(this.timeoutMs);
    try {
      const checked = parseWebhookUrl(url, this.environment.WEBHOOK_ALLOW_PRIVATE);
      const status = await this.post(checked, organizationId, message, credentials, timeout);
      if (status >= 200 && status < 300) return result('succeeded', status, null);
      return result(status === GONE ? 'gone' : 'failed', status, statusError(status));
    } catch (error) {
      return result('failed', null, timeout.aborted ? 'The receiver did not respond in time.' : errorText(error));
    }
  }

  /**
   * The look-up of the connection itself, so that it is made to an address that was checked, whatever the name resolves to
   * a moment later. TLS still verifies the name. The address in a URL is not looked up: `parseWebhookUrl` checks it.
   */
  private checkedLookup(organizationId: string): LookupFunction {
    return (host, options, callback) => {
      this.resolver.addressesOf(host, organizationId).then(
        (addresses) => {
          const [first] = addresses;
          if (options.all || !first) callback(null, addresses);
          else callback(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, []),
      );
    };
  }

  /** @returns the status of the response */
  private async post(
    url: URL,
    organizationId: string,
    message: WebhookMessage,
    { secrets, authorization }: Credentials,
    signal: AbortSignal,
  ): Promise<number> {
    // One agent for each attempt: a connection is never reused for a name that resolves to other addresses meanwhile.
    const connect = buildConnector({ lookup: this.checkedLookup(organizationId), timeout: this.timeoutMs });
    const dispatcher = new Agent({
      connect: (options, callback) =>
        connect(options, (...result) => {
          if (result[1]) boundReading(result[1]);
          callback(...result);
        }),
    });
    try {
      const { statusCode, body } = await request(url, {
        dispatcher,
        signal,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': USER_AGENT,
          ...(authorization !== null && { authorization }),
          ...signedHeaders(message, secrets, Date.now()),
        },
        body: message.body,
      });
      // The status decides, so a body that is too large, too slow or broken is not a failure.
      await body.dump({ limit: READ_BYTES_MAX }).catch(() => undefined);
      return statusCode;
    } finally {
      await dispatcher.destroy();
    }
  }
}

/** Counts the bytes of the connection: interim responses (1xx) and extensions of chunks may go on for ever, and are no body. */
function boundReading(socket: Socket): void {
  socket.on('readable', () => {
    if (socket.bytesRead > READ_BYTES_MAX) socket.destroy(new TooMuchSentError());
  });
}

class TooMuchSentError extends Error {
  override readonly message = `The receiver sent more than ${READ_BYTES_MAX / 1024} KB without a final response.`;
}

function statusError(status: number): string {
  if (status === GONE) return 'The receiver responded with 410: it wants no more deliveries.';
  if (status >= 300 && status < 400) return `The receiver responded with ${status}; redirects are not followed.`;
  return `The receiver responded with ${status}.`;
}

function errorText(error: unknown): string {
  if (error instanceof DomainError || error instanceof TooMuchSentError) return error.message;
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  return ERROR_CODE.test(code) ? `The connection failed (${code}).` : 'The connection failed.';
}
