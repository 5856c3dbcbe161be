import { Injectable } from '@nestjs/common';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import type { ReadingContext } from '../../video-platform.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { unlessAborted } from '../innertube/visitor-data-cache.js';

/** The player script changes every few days; WEB accepts the timestamps of the last ones. */
const AGE_MAX_MS = 6 * 3_600_000;
/** Shortest pause between two attempts to read it, so that a change of its form does not cost a download for each video. */
const ATTEMPT_PAUSE_MS = 300_000;
/** Longest download of the script; past it WEB is skipped. */
const TIMEOUT_MS = 30_000;

/**
 * The signature timestamp of WEB's current player script, without which `player` answers "The page needs to be reloaded." It
 * is read the way youtubei.js does: `/iframe_api` names the script, which has 2.5 MB, so it is cached for hours.
 */
@Injectable()
export class SignatureTimestamp {
  private known: { value: number; atMs: number } | null = null;
  private attemptedAtMs = Number.NEGATIVE_INFINITY;
  /** Never rejects. */
  private reading: Promise<number | null> | null = null;
  private readonly fairnessKey = {};

  constructor(private readonly innertube: InnertubeClient) {}

  /**
   * Null when it cannot be read. Concurrent callers share one download, which continues when one of them disconnects. Rejects
   * only when the scope's signal is aborted.
   */
  async get(scope: RequestScope): Promise<number | null> {
    const nowMs = performance.now();
    if (this.known && nowMs - this.known.atMs < AGE_MAX_MS) return this.known.value;
    if (!this.reading) {
      if (nowMs - this.attemptedAtMs < ATTEMPT_PAUSE_MS) return this.known?.value ?? null;
      this.attemptedAtMs = nowMs;
      this.reading = this.read(this.sharedScope(scope))
        .catch(() => null)
        .finally(() => (this.reading = null));
    }
    return unlessAborted(this.reading, scope.context.signal);
  }

  /** Has it read again after the platform refused a request with it; at most once in five minutes. */
  reject(value: number): void {
    if (this.known?.value === value && performance.now() - this.attemptedAtMs >= ATTEMPT_PAUSE_MS) this.known = null;
  }

  /** The scope of a download that does not end with the call that started it. */
  private sharedScope(scope: RequestScope): RequestScope {
    const context: ReadingContext = {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      deadlineAtMs: performance.now() + TIMEOUT_MS,
      fairnessKey: this.fairnessKey,
    };
    return { ...scope, context };
  }

  private async read(scope: RequestScope): Promise<number | null> {
    const api = await this.fetch('/iframe_api', scope);
    const playerId = api === null ? null : readPlayerId(api);
    if (playerId === null) return null;
    const script = await this.fetch(`/s/player/${playerId}/player_es6.vflset/en_US/base.js`, scope);
    const value = script === null ? null : readSignatureTimestamp(script);
    if (value !== null) this.known = { value, atMs: performance.now() };
    return value;
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
