import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Agent } from 'undici';
import { Environment } from '../../../config/environment.js';
import { parseJson } from '../../../domain/parse-json.js';
import { unlessAborted } from '../../../domain/waiting.js';
import { Attempt } from '../egress/attempt.js';
import { transfer, YOUTUBE_ORIGIN } from '../egress/http-transport.js';
import { type RequestScope, serviceScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { asNumber, asString, at } from '../response-parsing.js';
import { UpstreamMetrics } from '../upstream-metrics.js';

/** What WEB sends to play a video. */
export interface WebProof {
  poToken: string;
  signatureTimestamp: number;
}

/** Obtains what WEB needs in addition to the other clients. When it is not available, or without `PO_TOKEN_URL`, WEB is skipped. */
@Injectable()
export class WebProofs implements OnApplicationShutdown {
  private readonly tokens: PoTokenProvider | null;
  private readonly timestamp: SignatureTimestamp;

  constructor(
    { PO_TOKEN_URL, UPSTREAM_CONCURRENCY }: Environment,
    innertube: InnertubeClient,
    private readonly metrics: UpstreamMetrics,
  ) {
    this.tokens = PO_TOKEN_URL === undefined ? null : new PoTokenProvider(new URL(PO_TOKEN_URL), UPSTREAM_CONCURRENCY);
    this.timestamp = new SignatureTimestamp(innertube);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.tokens?.close();
  }

  /** Null when there is none. Rejects only when the scope's signal is aborted. */
  async get(videoId: string, scope: RequestScope): Promise<WebProof | null> {
    const poToken = this.tokens && (await this.tokens.tokenFor(videoId, scope.context.signal));
    // The script is large: it is not read for a provider that is down.
    const signatureTimestamp = poToken === null ? null : await this.timestamp.get(scope);
    const outcome = poToken === null ? 'no-token' : signatureTimestamp === null ? 'no-timestamp' : 'ok';
    this.metrics.notice('web-proof', 'WEB', outcome);
    return poToken === null || signatureTimestamp === null ? null : { poToken, signatureTimestamp };
  }

  /** Forgets the token of a video after the platform refused it. */
  reject(videoId: string): void {
    this.tokens?.reject(videoId);
  }
}

/** A provider solves a challenge in a browser environment, which takes seconds the first time. */
const TOKEN_TIMEOUT_MS = 10_000;
const TOKEN_BYTES_MAX = 64 * 1024;
/** A provider that does not respond would cost every video the timeout: after this many failures in a row it is not asked. */
const FAILURES_MAX = 3;
const PAUSE_MS = 60_000;
const TOKENS_MAX = 10_000;
/** Tokens are used for so long at the most, and not within the last minute of their validity. */
const TOKEN_MS_MAX = 12 * 3_600_000;
const EXPIRY_MARGIN_MS = 60_000;

/**
 * A provider of PO tokens, by which the platform recognizes browsers: WEB plays videos and returns captions only with one. It
 * has the interface of bgutil's HTTP server: `POST /get_pot { "content_binding": videoId }` returns
 * `{ "poToken", "contentBinding", "expiresAt" }` (bgutil-ytdlp-pot-provider 1.x). Tokens are cached by video until they expire.
 */
export class PoTokenProvider {
  private readonly tokens = new LRUCache<string, string>({ max: TOKENS_MAX });
  private readonly dispatcher: Agent;
  private readonly endpoint: URL;
  private failures = 0;
  private pausedUntilMs = 0;

  /** @param requestsMax how many tokens are requested at a time */
  constructor(
    url: URL,
    requestsMax: number,
    private readonly timeoutMs = TOKEN_TIMEOUT_MS,
  ) {
    this.endpoint = new URL(`${url.pathname.replace(/\/$/, '')}/get_pot`, url);
    this.dispatcher = new Agent({ connections: requestsMax, pipelining: 1 });
  }

  async close(): Promise<void> {
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
      bodyBytesMax: TOKEN_BYTES_MAX,
    };
    const ending = AbortSignal.any([signal, AbortSignal.timeout(this.timeoutMs)]);
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
  const validMs = Math.min(TOKEN_MS_MAX, expiresAtMs - nowMs - EXPIRY_MARGIN_MS);
  return { token, validMs: validMs > 0 ? Math.floor(validMs) : 0 };
}

/** The player script changes every few days; WEB accepts the timestamps of the last ones. */
const SCRIPT_MS_MAX = 3_600_000;
/** Shortest pause between two attempts to read it, so that a change of its form does not cost a download for each video. */
const SCRIPT_PAUSE_MS = 300_000;
/** Longest download of the script; past it WEB is skipped. */
const SCRIPT_TIMEOUT_MS = 30_000;

/**
 * The signature timestamp of WEB's current player script, without which `player` answers "The page needs to be reloaded." It
 * is read the way youtubei.js does: `/iframe_api` names the script, which has 2.5 MB, so it is cached for an hour.
 */
export class SignatureTimestamp {
  private reading: Promise<number | null> | undefined;
  private readAgainAtMs = 0;

  constructor(private readonly innertube: InnertubeClient) {}

  /**
   * Null when it cannot be read. Concurrent callers share one download, which continues when one of them disconnects. Rejects
   * only when the scope's signal is aborted.
   */
  get(scope: RequestScope): Promise<number | null> {
    if (!this.reading || performance.now() >= this.readAgainAtMs) {
      this.readAgainAtMs = Infinity;
      this.reading = this.read(scope).catch(() => null);
      // The session of a gateway that the call opened ends after the download.
      scope.egress.keepOpen(this.reading);
      void this.reading.then((value) => {
        this.readAgainAtMs = performance.now() + (value === null ? SCRIPT_PAUSE_MS : SCRIPT_MS_MAX);
      });
    }
    return unlessAborted(this.reading, scope.context.signal);
  }

  private async read({ egress, budget }: RequestScope): Promise<number | null> {
    const attempt = new Attempt('player-script', 'optional');
    const scope = { ...serviceScope(egress, 'player-script', SCRIPT_TIMEOUT_MS), attempt, budget };
    const api = await this.fetch('/iframe_api', scope);
    const playerId = api === null ? null : readPlayerId(api);
    if (playerId === null) return null;
    const script = await this.fetch(`/s/player/${playerId}/player_es6.vflset/en_US/base.js`, scope);
    return script === null ? null : readSignatureTimestamp(script);
  }

  private async fetch(path: string, scope: RequestScope): Promise<string | null> {
    const response = await this.innertube.fetchText('player-script', 'WEB', new URL(path, YOUTUBE_ORIGIN), scope);
    return response.kind === 'ok' ? response.body : null;
  }
}

/** The ID in the address of the player script, as `/iframe_api` has it with escaped slashes. */
export function readPlayerId(iframeApi: string): string | null {
  return /\/s\\?\/player\\?\/([A-Za-z0-9_-]{4,32})\\?\//.exec(iframeApi)?.[1] ?? null;
}

/** The days since 1970 that the player script sends as `signatureTimestamp`. */
export function readSignatureTimestamp(script: string): number | null {
  const [, days] = /\b(?:signatureTimestamp|sts)["']?\s?[:=]\s?(\d{5})\b/.exec(script) ?? [];
  return days === undefined ? null : Number(days);
}
