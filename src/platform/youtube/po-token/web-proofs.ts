import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { Attempt } from '../egress/attempt.js';
import { type RequestScope, serviceScope } from '../egress/request-pipeline.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { unlessAborted } from '../unless-aborted.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { PoTokenProvider } from './po-token-provider.js';

/** The player script changes every few days; WEB accepts the timestamps of the last ones. */
const AGE_MAX_MS = 3_600_000;
/** Shortest pause between two attempts to read it, so that a change of its form does not cost a download for each video. */
const ATTEMPT_PAUSE_MS = 300_000;
/** Longest download of the script; past it WEB is skipped. */
const TIMEOUT_MS = 30_000;
/** The only key of the cache. */
const CURRENT = 'current';

/** `value` is null when it could not be read. */
interface ReadTimestamp {
  readonly value: number | null;
}

/**
 * The signature timestamp of WEB's current player script, without which `player` answers "The page needs to be reloaded." It
 * is read the way youtubei.js does: `/iframe_api` names the script, which has 2.5 MB, so it is cached for an hour.
 */
@Injectable()
export class SignatureTimestamp {
  private readonly cache = new LRUCache<typeof CURRENT, ReadTimestamp, RequestScope>({
    max: 1,
    ttl: AGE_MAX_MS,
    fetchMethod: async (_key, _stale, { options, context }) => {
      // The download does not end with the call that started it, nor with the session of a gateway that the call opened.
      const reading = this.read({
        ...serviceScope(context.egress, 'player-script', TIMEOUT_MS),
        ...{ attempt: new Attempt('player-script', 'optional'), budget: context.budget },
      }).catch(() => null);
      context.egress.keepOpen(reading);
      const value = await reading;
      if (value === null) options.ttl = ATTEMPT_PAUSE_MS;
      return { value };
    },
  });

  constructor(private readonly innertube: InnertubeClient) {}

  /**
   * Null when it cannot be read. Concurrent callers share one download, which continues when one of them disconnects. Rejects
   * only when the scope's signal is aborted.
   */
  async get(scope: RequestScope): Promise<number | null> {
    const read = await unlessAborted(this.cache.fetch(CURRENT, { context: scope }), scope.context.signal);
    return read?.value ?? null;
  }

  private async read(scope: RequestScope): Promise<number | null> {
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

/** What WEB sends to play a video. */
export interface WebProof {
  poToken: string;
  signatureTimestamp: number;
}

/** Obtains what WEB needs in addition to the other clients. When it is not available, or without `PO_TOKEN_URL`, WEB is skipped. */
@Injectable()
export class WebProofs {
  constructor(
    @Inject(PoTokenProvider) private readonly tokens: PoTokenProvider | null,
    private readonly timestamp: SignatureTimestamp,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Null when there is none. Rejects only when the scope's signal is aborted. */
  async get(videoId: string, scope: RequestScope): Promise<WebProof | null> {
    const poToken = this.tokens && (await this.tokens.tokenFor(videoId, scope.context.signal));
    // The script is large: it is not read for a provider that is down.
    const signatureTimestamp = poToken === null ? null : await this.timestamp.get(scope);
    const outcome = poToken === null ? 'no-token' : signatureTimestamp === null ? 'no-timestamp' : 'ok';
    this.metrics.notice('web-proof', 'WEB', outcome);
    return poToken === null || signatureTimestamp === null ? null : { poToken, signatureTimestamp };
  }

  reject(videoId: string): void {
    this.tokens?.reject(videoId);
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
