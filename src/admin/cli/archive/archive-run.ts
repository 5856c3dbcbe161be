import { setTimeout as pause } from 'node:timers/promises';
import { UpstreamError } from '../../../domain/errors.js';
import type { Channel, Upload } from '../../../domain/transcript.js';
import { formatTranscript } from '../../../transcripts/formats/transcript-formats.js';
import { inflate } from '../../../transcripts/cache/transcript-text.js';
import { entryJson } from '../../../transcripts/response/response-writer.js';
import { statesBlock, type Entry, type SucceededEntry } from '../../../transcripts/transcript-events.js';
import type { TranscriptsService } from '../../../transcripts/transcripts.service.js';
import type { ArchiveDirectory } from './archive-directory.js';
import { writeIndex, type IndexedVideo } from './archive-index.js';
import { archiveFileName, type ArchiveFormat } from './file-name.js';
import type { ProgressReport } from './progress.js';
import { stoppable } from './uploads-list.js';

/** Two batches of 25 videos keep the connections busy while the last videos of one of them are fetched. */
const BATCH_VIDEOS = 25;
const BATCHES_AT_A_TIME = 2;
/** How often a run tries a video that the platform did not serve. */
const ATTEMPTS_MAX = 3;
const WAIT_SECONDS_DEFAULT = 10;
const WAIT_SECONDS_MAX = 60;
/** The index of a large archive has megabytes. A run that is killed finds its files by their names. */
const INDEX_INTERVAL_MS = 30_000;

/** Nobody is charged. */
const PAYER = { organizationId: '', keyId: '', requestId: 'command' };

/** A video of the list, and its place in the index. */
export interface ListedVideo {
  upload: Upload;
  indexed: IndexedVideo;
  /** Counted from the oldest. */
  position: number;
}

export interface ArchiveContent {
  channel: Channel;
  format: ArchiveFormat;
  languages: readonly string[];
  /** In the order of the index. */
  videos: readonly IndexedVideo[];
  /** The videos to fetch, in the order in which they are fetched. */
  missing: readonly ListedVideo[];
}

/** Fetches the videos that an archive lacks, and writes their files and the index. */
export class ArchiveRun {
  /** The number of files that this run has written. */
  written = 0;
  private readonly pending: ListedVideo[];
  private readonly attempts = new Map<ListedVideo, number>();
  private readonly failing = new AbortController();
  private readonly ended: AbortSignal;
  private stored: number;
  private failed: number;
  private finished = 0;
  private indexedAtMs = performance.now();

  /** @param stop ends the run after the files that are being written */
  constructor(
    private readonly content: ArchiveContent,
    private readonly directory: ArchiveDirectory,
    private readonly transcripts: TranscriptsService,
    stop: AbortSignal,
    private readonly progress: ProgressReport,
  ) {
    this.pending = [...content.missing];
    this.stored = content.videos.filter(({ file }) => file !== null).length;
    this.failed = content.videos.length - content.missing.length - this.stored;
    this.ended = AbortSignal.any([stop, this.failing.signal]);
  }

  /**
   * Resolves when each video has a file or an error, or `stop` aborts. The index is written in every case.
   *
   * @throws ArchiveDirectoryError, and UpstreamError when the platform blocks the requests
   */
  async fetch(): Promise<void> {
    this.report();
    const workers = Array.from({ length: BATCHES_AT_A_TIME }, () => this.work());
    const results = await Promise.allSettled(workers);
    await this.saveIndex();
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  private async work(): Promise<void> {
    try {
      while (!this.ended.aborted && this.pending.length > 0) {
        const waitSeconds = await this.fetchBatch(this.pending.splice(0, BATCH_VIDEOS));
        if (performance.now() - this.indexedAtMs > INDEX_INTERVAL_MS) await this.saveIndex();
        if (waitSeconds > 0) await this.wait(waitSeconds);
      }
    } catch (error) {
      this.failing.abort();
      throw error;
    }
  }

  /** @returns the seconds to wait before the next batch */
  private fetchBatch(batch: readonly ListedVideo[]): Promise<number> {
    const { channel, languages } = this.content;
    const videos = new Map(batch.map((video) => [video.upload.videoId, video]));
    const uploads = batch.map(({ upload }) => upload);
    const source = () =>
      Promise.resolve({ header: { type: 'channel' as const, channel }, resource: channel.id, uploads });
    return stoppable(this.ended, async (signal) => {
      const times = { startedAtMs: performance.now(), responseEnd: signal };
      const plan = await this.transcripts.prepare({ source, languages }, PAYER, times);
      const outcome = { served: 0, blocked: 0, busy: 0, retryAfterSeconds: 0 };
      for await (const event of this.transcripts.deliver(plan).events('as-finished')) {
        if (signal.aborted) return 0;
        const video = event.type === 'result' ? videos.get(event.entry.videoId) : undefined;
        if (event.type !== 'result' || !video) continue;
        const { entry } = event;
        if (entry.ok) await this.store(entry, video);
        else {
          const { code, retryAfterSeconds } = entry.error;
          if (statesBlock(entry.error)) outcome.blocked++;
          if (code === 'upstream_busy') outcome.busy++;
          outcome.retryAfterSeconds = Math.max(outcome.retryAfterSeconds, retryAfterSeconds ?? 0);
          this.fail(entry, video);
        }
        if (entry.ok || !entry.error.code.startsWith('upstream_')) outcome.served++;
        this.report();
      }
      const { served, blocked, busy, retryAfterSeconds } = outcome;
      if (blocked > 0 && served === 0) throw new UpstreamError('upstream_blocked', undefined, retryAfterSeconds);
      if (busy < batch.length) return 0;
      return Math.min(WAIT_SECONDS_MAX, retryAfterSeconds || WAIT_SECONDS_DEFAULT);
    });
  }

  private async store(entry: SucceededEntry, video: ListedVideo): Promise<void> {
    const { indexed, position } = video;
    describe(indexed, entry);
    const name = archiveFileName(indexed, position, this.content.format);
    await this.directory.write(name, this.piecesOf(entry));
    indexed.file = name;
    indexed.error = null;
    this.written++;
    this.stored++;
    this.finished++;
  }

  private fail(entry: Extract<Entry, { ok: false }>, video: ListedVideo): void {
    const { code, message, retryable } = entry.error;
    const isPlatform = code.startsWith('upstream_');
    const attempts = (this.attempts.get(video) ?? 0) + (code === 'upstream_busy' ? 0 : 1);
    this.attempts.set(video, attempts);
    if (isPlatform && attempts < ATTEMPTS_MAX) {
      this.pending.push(video);
      return;
    }
    describe(video.indexed, entry);
    video.indexed.error = { code, message, retryable };
    this.failed++;
    this.finished++;
  }

  private async *piecesOf({
    videoId,
    metadata,
    transcript,
    ...entry
  }: SucceededEntry): AsyncGenerator<string | Buffer> {
    const { format, languages } = this.content;
    if (format === 'markdown') {
      yield* formatTranscript(format, { videoId, metadata, transcript: await inflate(transcript) }, languages);
      return;
    }
    const parts = entryJson('', { videoId, metadata, transcript, ...entry }, '\n');
    for (const part of parts) yield typeof part === 'string' ? part : await inflate(part);
  }

  private async saveIndex(): Promise<void> {
    this.indexedAtMs = performance.now();
    const { channel, format, languages, videos } = this.content;
    const index = { channel, format, languages: [...languages], videos: [...videos] };
    await this.directory.writeIndex(writeIndex(index, new Date()));
  }

  private async wait(seconds: number): Promise<void> {
    this.progress.waiting(seconds);
    await pause(seconds * 1000, undefined, { signal: this.ended }).catch(() => undefined);
  }

  private report(): void {
    const { stored, failed, finished } = this;
    const total = this.content.videos.length;
    this.progress.fetching({ done: stored + failed, total, failed, doneByThisRun: finished });
  }
}

/** The video's own metadata is exact where that of the list is not. */
function describe(indexed: IndexedVideo, { metadata }: Entry): void {
  indexed.title = metadata.title ?? indexed.title;
  indexed.publishedAt = metadata.publishedAt ?? indexed.publishedAt;
}
