import type { QuotaState } from '../domain/errors.js';
import type { Channel, Upload } from '../domain/transcript.js';
import type { CachedOutcome } from './cache/transcript-cache.js';

/** One upload and what was known of it when the call was planned. */
export interface PlannedVideo {
  upload: Upload;
  /** Undefined when it has to be fetched, which a reservation covers. */
  outcome: CachedOutcome | undefined;
}

/** Who pays for a call, and what they call it. */
export interface Payer {
  organizationId: string;
  keyId: string;
  requestId: string;
}

/** A call that can no longer be refused. */
export interface CallPlan {
  payer: Payer;
  channel: Channel;
  videos: PlannedVideo[];
  languages: readonly string[];
  /** Undefined when nothing has to be fetched. */
  reservation: { id: string; leaseEndsAtMs: number } | undefined;
  /** How the quota stands, this reservation counted. */
  quota: QuotaState;
}

/** How many videos a plan has to fetch at the most, each of which can cost one count. */
export function requiredCount(videos: readonly { outcome: unknown }[]): number {
  return videos.filter((video) => !video.outcome).length;
}

/** The largest `limit` whose videos would cost no more than `remaining`; 0 when there is none. */
export function limitThatFits(videos: readonly { outcome: unknown }[], remaining: number): number {
  let cost = 0;
  for (const [index, { outcome }] of videos.entries()) {
    if (!outcome) cost++;
    if (cost > Math.max(0, remaining)) return index;
  }
  return videos.length;
}
