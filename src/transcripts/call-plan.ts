import { languageChoice } from '../domain/language-codes.js';
import type { Includable, Upload } from '../domain/transcript.js';
import type { Wanted } from '../http/routes/validation.js';
import type { ReservationResult } from '../quota/quota.service.js';
import type { CachedOutcome } from './cache/transcript-cache.js';
import type { Call } from './call.js';
import type { TextFields } from './dto/transcripts-query.dto.js';
import type { TextForm } from './formats/markdown.js';
import type { HeldTexts } from './delivery/response-memory.js';
import type { ListHeader, VideoSource } from './sources/video-list.js';

export interface TranscriptsRequest extends Wanted<TextFields> {
  source: VideoSource;
  /** The IDs of videos that are tried again; as for `TranscriptCache.getMany`. */
  again?: ReadonlySet<string> | undefined;
}

/** How the texts of a request are read and written. */
export function textFormOf({ chunkSeconds, ...choice }: Wanted<TextFields>): TextForm {
  return { languages: languageChoice(choice), chunkSeconds: chunkSeconds ?? undefined };
}

/** One video and its state in the cache when the call was planned. */
export interface PlannedVideo {
  upload: Upload;
  /** Undefined when the video has to be fetched, which the reservation covers. */
  outcome: CachedOutcome | undefined;
}

/** A call that can no longer be refused. `reservation` is undefined when nothing has to be fetched. */
export interface CallPlan extends ReservationResult, TextForm {
  call: Call;
  header: ListHeader;
  resource: string;
  /** Each video once. */
  videos: PlannedVideo[];
  /** The order of the entries, in which a video can occur more than once. */
  order: PlannedVideo[];
  include?: readonly Includable[] | undefined;
  again?: ReadonlySet<string> | undefined;
  sinceFound?: boolean | undefined;
  /** When the videos were looked up in the cache, in milliseconds of `performance.now()`. */
  lookedUpAtMs: number;
  /** Its cached texts, until they are sent. */
  held: HeldTexts;
}

/** The number of videos that have to be fetched, each of which can cost one count. */
export function requiredCount(videos: readonly { outcome: unknown }[]): number {
  return videos.filter((video) => !video.outcome).length;
}

/**
 * The largest number of entries, from the first on, that cost at most `remaining`; 0 when even the first costs more.
 *
 * @param order in which a video that occurs more than once is the same object
 */
export function limitThatFits(order: readonly { outcome: unknown }[], remaining: number): number {
  const fetched = new Set<object>();
  for (const [index, video] of order.entries()) {
    if (!video.outcome) fetched.add(video);
    if (fetched.size > Math.max(0, remaining)) return index;
  }
  return order.length;
}
