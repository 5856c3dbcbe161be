import type { OnApplicationShutdown } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Agent } from 'undici';
import { parseJson } from '../../../domain/parse-json.js';
import { transfer } from '../egress/http-transport.js';
import { report } from '../event-log.js';
import { asNumber, asString, at } from '../response-parsing.js';

/** A provider solves a challenge in a browser environment, which takes seconds the first time. */
const TIMEOUT_MS = 10_000;
const BODY_BYTES_MAX = 64 * 1024;
/** A provider that does not respond would cost every video the timeout: after this many failures in a row it is not asked. */
const FAILURES_MAX = 3;
const PAUSE_MS = 60_000;
const CACHED_MAX = 10_000;
/** Tokens are used for so long at the most, and not within the last minute of their validity. */
const AGE_MAX_MS = 12 * 3_600_000;
const EXPIRY_MARGIN_MS = 60_000;

interface PoTokenProviderOptions {
  url: URL;
  /** How many tokens are requested at a time. */
  requestsMax: number;
  timeoutMs?: number;
}

/**
 * A provider of PO tokens, by which the platform recognizes browsers: WEB plays videos and returns captions only with one. It
 * has the interface of bgutil's HTTP server: `POST /get_pot { "content_binding": videoId }` returns
 * `{ "poToken", "contentBinding", "expiresAt" }` (bgutil-ytdlp-pot-provider 1.x). Tokens are cached by video until they expire.
 */
export class PoTokenProvider implements OnApplicationShutdown {
  private readonly tokens = new LRUCache<string, string>({ max: CACHED_MAX });
  private readonly dispatcher: Agent;
  private readonly endpoint: URL;
  private failures = 0;
  private pausedUntilMs = 0;

  constructor(private readonly options: PoTokenProviderOptions) {
    this.endpoint = new URL(`${options.url.pathname.replace(/\/$/, '')}/get_pot`, options.url);
    this.dispatcher = new Agent({ connections: options.requestsMax, pipelining: 1 });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.dispatcher.destroy();
  }

  /**
   * Returns a token bound to a video, or null when none is available. Rejects only when the signal is aborted, with its
   * reason.
   */
  async tokenFor(videoId: string, signal: AbortSignal): Promise<string | null> {
    signal.throwIfAborted();
    const cached = this.tokens.get(videoId);
    if (cached !== undefined) return cached;
    if (performance.now() < this.pausedUntilMs) return null;
    const token = await this.request(videoId, signal).catch(() => null);
    signal.throwIfAborted();
    this.count(token !== null);
    return token;
  }

  /** Forgets the token of a video after the platform refused it. */
  reject(videoId: string): void {
    this.tokens.delete(videoId);
  }

  private count(isIssued: boolean): void {
    const wasDown = this.failures >= FAILURES_MAX;
    this.failures = isIssued ? 0 : this.failures + 1;
    const isDown = this.failures >= FAILURES_MAX;
    if (isDown) this.pausedUntilMs = performance.now() + PAUSE_MS;
    if (isDown && !wasDown) report('warn', 'youtube_po_token_provider_down', { pauseSeconds: PAUSE_MS / 1000 });
    if (wasDown && !isDown) report('log', 'youtube_po_token_provider_back', {});
  }

  private async request(videoId: string, signal: AbortSignal): Promise<string | null> {
    const request = {
      url: this.endpoint,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content_binding: videoId }),
      bodyBytesMax: BODY_BYTES_MAX,
    };
    const ending = AbortSignal.any([signal, AbortSignal.timeout(this.options.timeoutMs ?? TIMEOUT_MS)]);
    const { status, body } = await transfer(request, this.dispatcher, ending, null);
    if (status !== 200) return null;
    const issued = readPoToken(body, videoId, Date.now());
    if (!issued) return null;
    if (issued.validMs > 0) this.tokens.set(videoId, issued.token, { ttl: issued.validMs });
    return issued.token;
  }
}

/**
 * Reads a provider's response; null when it has no token for the video. `validMs` is how long the token can be cached: 0 when
 * the response does not say.
 */
export function readPoToken(body: string, videoId: string, nowMs: number): { token: string; validMs: number } | null {
  const response = parseJson(body);
  const token = asString(at(response, 'poToken'));
  // The token is part of a URL and of a JSON body.
  if (token === null || !/^[A-Za-z0-9_=+/%.~-]{1,4096}$/.test(token)) return null;
  const binding = asString(at(response, 'contentBinding'));
  if (binding !== null && binding !== videoId) return null;
  const expiresAt = at(response, 'expiresAt');
  const expiresAtMs = asNumber(expiresAt) ?? Date.parse(asString(expiresAt) ?? '');
  const validMs = Math.min(AGE_MAX_MS, expiresAtMs - nowMs - EXPIRY_MARGIN_MS);
  return { token, validMs: validMs > 0 ? Math.floor(validMs) : 0 };
}
