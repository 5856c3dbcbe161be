import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { BackgroundLoops, type BackgroundLoop } from '../background/background-loops.js';
import { Environment } from '../config/environment.js';
import { inTurn } from '../database/query-with-deadline.js';
import { languageChoice } from '../domain/language-codes.js';
import { Channel, NO_DETAILS, TextTracks, Upload, unlistedVideo, VideoDetails } from '../domain/transcript.js';
import { readStoredJob } from '../jobs/job-request.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import { TranscriptCache, type CachedOutcome } from '../transcripts/cache/transcript-cache.js';
import { deflate, inflate } from '../transcripts/cache/transcript-text.js';
import { choiceKey, keptParameters, keptText } from '../transcripts/kept/kept-text.js';
import { KeptTexts, type KeptTextRow, textOfRow } from '../transcripts/kept/kept-texts.js';

/** Rows that one statement removes. */
const REMOVED_ROWS_MAX = 2_000;

interface BacklogRow {
  id: string;
  organization_id: string;
  request: string;
  channel: string | null;
  kept_sequence: number;
  begun: number;
}

type StoredRow = KeptTextRow & { sequence: number; video_id: string; upload: string };

/** One of the jobs whose results are to be kept. */
const NEXT_JOB = `
  SELECT job.id, job.organization_id, job.request, job.channel, backlog.sequence AS kept_sequence, backlog.begun
    FROM (SELECT * FROM library_backlog ORDER BY random() LIMIT 1) backlog JOIN jobs job ON job.id = backlog.job_id`;

/** The next result of a job $1 after $2 whose text its organization $3 does not keep for the languages $4. */
const NEXT_RESULT = `
  SELECT video.sequence, video.video_id, video.upload, video.entry, video.entry_bytes, video.entry_crc FROM job_videos video
    WHERE video.job_id = $1 AND video.sequence > $2 AND video.state = 'succeeded' AND NOT EXISTS (
      SELECT FROM library_texts WHERE organization_id = $3 AND video_id = video.video_id AND $4 = ANY (choices) AND deleted_at IS NULL)
    ORDER BY video.sequence LIMIT 1`;

const KEEP = 'SELECT library_keep_stored($1, $2, $3, $4, $5, $6, $7)';

const WAITING = `
  SELECT coalesce(sum(job.succeeded + job.failed - backlog.sequence), 0)::double precision AS waiting
    FROM library_backlog backlog JOIN jobs job ON job.id = backlog.job_id`;

/** Keeps results that were stored before their job did, and removes the rows of what was deleted. */
@Injectable()
export class LibraryUpkeep implements OnApplicationBootstrap {
  private readonly loops: readonly BackgroundLoop[];

  constructor(
    private readonly database: DataSource,
    private readonly cache: TranscriptCache,
    private readonly texts: KeptTexts,
    private readonly environment: Environment,
    registry: Registry,
    loops: BackgroundLoops,
  ) {
    const pauseMs = environment.JOB_SWEEP_SECONDS * 1000;
    this.loops = [
      loops.create('library_backlog', pauseMs, () => this.keepNext()),
      loops.create('library_removal', pauseMs, () => this.remove()),
    ];
    const gauge: Gauge = new Gauge({
      name: 'ct_library_backlog_results',
      help: 'Stored results that are to be kept in libraries and were not looked at yet.',
      registers: [registry],
      collect: () =>
        this.database.query<[{ waiting: number }]>(WAITING).then(
          ([{ waiting }]) => gauge.set(waiting),
          () => undefined,
        ),
    });
  }

  onApplicationBootstrap(): void {
    if (this.environment.JOB_CONCURRENCY > 0) for (const loop of this.loops) loop.start();
  }

  private async keepNext(): Promise<'again' | undefined> {
    const [job] = await this.database.query<BacklogRow[]>(NEXT_JOB);
    if (!job) return undefined;
    const choice = languageChoice(readStoredJob(job.request));
    const place = [job.id, job.kept_sequence, job.organization_id, choiceKey(choice)];
    const [row] = await this.database.query<StoredRow[]>(NEXT_RESULT, place);
    const text = row && (await this.storedText(row, job, choice));
    const { kept, entries } = keptParameters(text ? [text] : []);
    const values = [job.id, job.kept_sequence, job.begun, row?.sequence ?? null, kept, entries, this.texts.bytesMax];
    await inTurn(this.database, job.organization_id, () => this.database.query(KEEP, values));
    return 'again';
  }

  /** As it is cached, else as the entry has it: in chunks, if these were requested, and with the metadata that were. */
  private async storedText(row: StoredRow, job: BacklogRow, choice: readonly string[]) {
    const upload = fromJson(Buffer.from(row.upload), Upload) ?? unlistedVideo(row.video_id);
    const channel = (job.channel !== null && fromJson(Buffer.from(job.channel), Channel)) || null;
    const [cached] = await this.cache.getMany([row.video_id], choice);
    const outcome = cached?.ok ? cached : await outcomeOf(row);
    return outcome && keptText(upload, outcome, choice, channel);
  }

  private async remove(): Promise<'again' | undefined> {
    const [row] = await this.database.query<{ removed: number }[]>('SELECT library_remove_batch($1) AS removed', [
      REMOVED_ROWS_MAX,
    ]);
    return (row?.removed ?? 0) > 0 ? 'again' : undefined;
  }
}

/** Of the entry of a result. */
async function outcomeOf(row: StoredRow): Promise<(CachedOutcome & { ok: true }) | undefined> {
  const { metadata, transcript, tracks } = JSON.parse((await inflate(textOfRow(row))).toString()) as {
    metadata: object;
    transcript: object;
    tracks?: object;
  };
  const details = VideoDetails.safeParse({ ...NO_DETAILS, ...metadata }).data;
  const known = TextTracks.safeParse(tracks).data ?? {};
  return (
    details && { ok: true, details, tracks: known, transcript: await deflate(Buffer.from(JSON.stringify(transcript))) }
  );
}
