import { Injectable } from '@nestjs/common';
import { Registry, type Counter } from 'prom-client';
import { VIDEO_FAILURE_CODES } from '../domain/transcript.js';
import { createCounter } from '../observability/metrics-registry.js';
import type { Entry } from './delivery/transcript-events.js';

const CACHED_KINDS = ['transcript', 'channel_id', 'channel', 'uploads', 'playlist'] as const;
export type CachedKind = (typeof CACHED_KINDS)[number];

/** Metrics of the entries in responses and of the cache lookups for them. */
@Injectable()
export class TranscriptMetrics {
  private readonly entries: Counter<'outcome'>;
  private readonly lookups: Counter<'kind' | 'result'>;
  private readonly unreadableEntries: Counter<'kind'>;

  constructor(registry: Registry) {
    const entries =
      'Entries of responses, and videos of archive jobs that are not tried again: cached, fetched, or the code of their failure.';
    const outcomes = { outcome: ['cached', 'fetched', ...VIDEO_FAILURE_CODES] };
    this.entries = createCounter(registry, 'ct_entries_total', entries, outcomes);
    const lookups = 'Cache lookups for calls, by the kind of entry.';
    const labels = { kind: CACHED_KINDS, result: ['hit', 'miss'] };
    this.lookups = createCounter(registry, 'ct_cache_lookups_total', lookups, labels);
    const unreadable = 'Cache entries that could not be read and counted as missing.';
    const kinds = { kind: CACHED_KINDS };
    this.unreadableEntries = createCounter(registry, 'ct_cache_unreadable_entries_total', unreadable, kinds);
  }

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
