import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { VIDEO_FAILURE_CODES } from '../domain/transcript.js';
import type { Entry } from './transcript-events.js';

const CACHED_KINDS = ['transcript', 'channel_id', 'channel', 'uploads', 'newest_uploads', 'playlist'] as const;
export type CachedKind = (typeof CACHED_KINDS)[number];

/** Metrics of the entries in responses and of the cache lookups for them. */
@Injectable()
export class TranscriptMetrics {
  private readonly entries: Counter<'outcome'>;
  private readonly lookups: Counter<'kind' | 'result'>;
  private readonly unreadableEntries: Counter<'kind'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.entries = new Counter({
      name: 'ct_entries_total',
      help: 'Entries of responses, and videos of archive jobs that are not tried again: cached, fetched, or the code of their failure.',
      labelNames: ['outcome'],
      registers,
    });
    this.lookups = new Counter({
      name: 'ct_cache_lookups_total',
      help: 'Cache lookups for calls, by the kind of entry.',
      labelNames: ['kind', 'result'],
      registers,
    });
    this.unreadableEntries = new Counter({
      name: 'ct_cache_unreadable_entries_total',
      help: 'Cache entries that could not be read and counted as missing.',
      labelNames: ['kind'],
      registers,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const outcome of ['cached', 'fetched', ...VIDEO_FAILURE_CODES]) this.entries.inc({ outcome }, 0);
    for (const kind of CACHED_KINDS) {
      for (const result of ['hit', 'miss']) this.lookups.inc({ kind, result }, 0);
      this.unreadableEntries.inc({ kind }, 0);
    }
  }

  /** Counts lookups with one result. */
  countLookups(kind: CachedKind, found: boolean, lookups = 1): void {
    this.lookups.inc({ kind, result: found ? 'hit' : 'miss' }, lookups);
  }

  /** Counts an entry that exists and cannot be read; its lookup counts as a miss too. */
  countUnreadable(kind: CachedKind): void {
    this.unreadableEntries.inc({ kind });
  }

  /** Counts an entry that is about to be written. */
  entry(entry: Entry): void {
    this.entries.inc({ outcome: entry.ok ? (entry.cached ? 'cached' : 'fetched') : entry.error.code });
  }
}
