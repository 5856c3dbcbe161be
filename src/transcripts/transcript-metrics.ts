import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { VIDEO_FAILURE_CODES } from '../domain/transcript.js';
import { outcomeOf, type Entry, type EntryOutcome } from './transcript-events.js';

type CachedKind = 'transcript' | 'channel_id' | 'channel' | 'uploads' | 'playlist';

/** Counts the cache lookups of one kind of entry. */
export class CacheLookups {
  constructor(
    private readonly kind: CachedKind,
    private readonly lookups: Counter<'kind' | 'result'>,
    private readonly unreadableEntries: Counter<'kind'>,
  ) {
    lookups.inc({ kind, result: 'hit' }, 0);
    lookups.inc({ kind, result: 'miss' }, 0);
    unreadableEntries.inc({ kind }, 0);
  }

  count(found: boolean, lookups = 1): void {
    this.lookups.inc({ kind: this.kind, result: found ? 'hit' : 'miss' }, lookups);
  }

  /** Counts an entry that exists and cannot be read; its lookup counts as a miss too. */
  unreadable(): void {
    this.unreadableEntries.inc({ kind: this.kind });
  }
}

/** Metrics of the entries in responses and of the cache lookups for them. */
@Injectable()
export class TranscriptMetrics {
  readonly cache: Readonly<Record<CachedKind, CacheLookups>>;
  private readonly entries: Counter<'outcome'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.entries = new Counter({
      name: 'ct_entries_total',
      help: 'Entries of responses, and videos of archive jobs that are not tried again: cached, fetched, or the code of their failure.',
      labelNames: ['outcome'],
      registers,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const outcome of ['cached', 'fetched', ...VIDEO_FAILURE_CODES]) this.entries.inc({ outcome }, 0);
    const lookups = new Counter({
      name: 'ct_cache_lookups_total',
      help: 'Cache lookups for calls, by the kind of entry.',
      labelNames: ['kind', 'result'],
      registers,
    });
    const unreadable = new Counter({
      name: 'ct_cache_unreadable_entries_total',
      help: 'Cache entries that could not be read and counted as missing.',
      labelNames: ['kind'],
      registers,
    });
    const of = (kind: CachedKind): CacheLookups => new CacheLookups(kind, lookups, unreadable);
    this.cache = {
      transcript: of('transcript'),
      channel_id: of('channel_id'),
      channel: of('channel'),
      uploads: of('uploads'),
      playlist: of('playlist'),
    };
  }

  /** Counts an entry that is about to be written. */
  entry(entry: Entry): void {
    this.countEntries(outcomeOf(entry), 1);
  }

  /** Counts entries of one outcome. */
  countEntries(outcome: EntryOutcome, entries: number): void {
    this.entries.inc({ outcome }, entries);
  }
}
