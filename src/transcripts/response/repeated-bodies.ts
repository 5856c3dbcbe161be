import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { CachedOutcome } from '../cache/transcript-cache.js';
import type { VideoList } from '../sources/video-list.js';
import type { EntryOutcome } from '../transcript-events.js';
import { ResponseMemory } from './response-memory.js';

/** The bodies use at most this share of the response memory. */
const BODIES_SHARE = 8;
/** Larger bodies, as a share of the response memory, are not stored. */
const BODY_SHARE = 16;
/** Bodies that are copied at a time, each held by its reader until the end. */
const RECORDINGS_MAX = 2;

/** The body of a response, as it is written. */
export interface RepeatedBody {
  readonly bytes: Buffer;
  /** What its entries count as. */
  readonly outcomes: readonly EntryOutcome[];
}

/** Copies a body while it is written. */
export interface BodyRecording {
  add(bytes: Buffer): void;
  /** Ends the recording; stores the body only when it was written to its end. */
  end(isComplete: boolean): void;
}

/**
 * The last bodies of responses whose entries were all cached. A body is valid while the cached list of its videos is the same
 * object, so that a repeated call neither looks its videos up nor writes its entries again; a transcript that has expired
 * meanwhile is sent until that list expires. Such a call fetches nothing, and so it is charged nothing.
 */
@Injectable()
export class RepeatedBodies {
  private readonly bodies: LRUCache<string, RepeatedBody & { list: object }>;
  private recordings = 0;

  constructor(private readonly memory: ResponseMemory) {
    this.bodies = new LRUCache({
      maxSize: Math.max(1, Math.floor(memory.bytesMax / BODIES_SHARE)),
      sizeCalculation: ({ bytes }) => bytes.length + 1,
    });
  }

  /** @param form distinguishes the bodies of a list: content type, encoding, languages */
  find(list: VideoList, form: string): RepeatedBody | undefined {
    // A slow reader holds a whole body, and may do so only while memory is left.
    if (!list.cachedAs || this.memory.isHalfFull) return undefined;
    const known = this.bodies.get(keyOf(list, form));
    return known?.list === list.cachedAs ? known : undefined;
  }

  /** Starts to record a body; undefined when an entry is not cached, or the body would not be found again. */
  record(
    list: VideoList,
    form: string,
    order: readonly { outcome: CachedOutcome | undefined }[],
  ): BodyRecording | undefined {
    const { cachedAs } = list;
    const outcomes: EntryOutcome[] = order.flatMap(({ outcome }) =>
      outcome ? [outcome.ok ? 'cached' : outcome.failure.code] : [],
    );
    if (!cachedAs || this.recordings >= RECORDINGS_MAX || outcomes.length < order.length) return undefined;
    this.recordings++;
    const parts: Buffer[] = [];
    let bytes = 0;
    return {
      add: (part) => {
        bytes += part.length;
        if (bytes > this.memory.bytesMax / BODY_SHARE) parts.length = 0;
        else parts.push(part);
      },
      end: (isComplete) => {
        this.recordings--;
        if (!isComplete || bytes > this.memory.bytesMax / BODY_SHARE) return;
        this.bodies.set(keyOf(list, form), { list: cachedAs, bytes: Buffer.concat(parts), outcomes });
      },
    };
  }
}

/** A call is about the first videos of a list, so that their number identifies them. */
function keyOf({ resource, uploads }: VideoList, form: string): string {
  return `${resource} ${uploads.length} ${form}`;
}
