import { Injectable } from '@nestjs/common';
import { VIDEO_FAILURE_CODES, type VideoFailureCode } from '../domain/transcript.js';
import type { Entry } from './transcript-events.js';

/** How an entry of an answer ended: with a transcript that was there or was fetched for the call, or why without. */
export type EntryOutcome = 'cached' | 'fetched' | VideoFailureCode;

/** What is remembered, by what it is about. */
export const CACHED_KINDS = ['transcript', 'channel_id', 'channel', 'uploads'] as const;
export type CachedKind = (typeof CACHED_KINDS)[number];

/** How often one kind of entry was looked for in the cache. */
export class CacheLookups {
  hits = 0;
  misses = 0;
  /** Entries that were there and could not be read; each is a miss too. */
  unreadable = 0;

  count(found: boolean): void {
    if (found) this.hits += 1;
    else this.misses += 1;
  }
}

/** Counts entries by how they ended and lookups in the cache, for metrics. */
@Injectable()
export class TranscriptMetrics {
  readonly cache: Readonly<Record<CachedKind, CacheLookups>> = {
    transcript: new CacheLookups(),
    channel_id: new CacheLookups(),
    channel: new CacheLookups(),
    uploads: new CacheLookups(),
  };
  private readonly counts = new Map<EntryOutcome, number>(
    (['cached', 'fetched', ...VIDEO_FAILURE_CODES] as const).map((outcome) => [outcome, 0]),
  );

  /** An entry that is about to be written. */
  entry(entry: Entry): void {
    const outcome = entry.ok ? (entry.cached ? 'cached' : 'fetched') : entry.error.code;
    this.counts.set(outcome, (this.counts.get(outcome) ?? 0) + 1);
  }

  entries(): Iterable<[EntryOutcome, number]> {
    return this.counts.entries();
  }
}
