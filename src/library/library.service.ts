import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import type { Actor, Caller } from '../domain/caller.js';
import { fixedError } from '../domain/errors.js';
import { toPage, UnknownCursorError, type Page } from '../domain/page.js';
import { nextTurn } from '../domain/waiting.js';
import { Channel, unlistedVideo, type TextTracks, type Transcript } from '../domain/transcript.js';
import { parseVideoReference } from '../domain/references/video-reference.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../http/routes/validation.js';
import { labelOf } from '../jobs/dto/labels.js';
import { wantedValues } from '../jobs/list-filter.js';
import { CallRate } from '../rate-limit/call-rate.js';
import { fromJson } from '../transcripts/cache/keyed-codec.js';
import { inflate, readTranscript } from '../transcripts/cache/transcript-text.js';
import { ResponseMemory } from '../transcripts/delivery/response-memory.js';
import { metadataOf, type Entry } from '../transcripts/delivery/transcript-events.js';
import { documentLines, documentsOf } from '../transcripts/formats/documents.js';
import { secondUrl } from '../transcripts/formats/markdown.js';
import { KeptVideo } from '../transcripts/kept/kept-text.js';
import { type KeptTextRow, textOfRow } from '../transcripts/kept/kept-texts.js';
import type { LibrarySearchQueryDto, LibraryVideosQueryDto } from './dto/library-request.dto.js';
import type {
  DeletedVideosDto,
  LibraryVideo,
  LibraryVideosDto,
  SearchResult,
  SearchResultsDto,
} from './dto/library-response.dto.js';
import { excerptOf } from './excerpt.js';
import { parseQuery } from './search-query.js';

/** A page of results counts as a call for so much text that it reads, which takes about 30 ms. */
const BYTES_PER_CALL = 1024 * 1024;

/** The newest passages that match, among which the rank decides. */
const CANDIDATES_MAX = 2_000;
const TOTAL_MAX = 1_000;

export class NotInLibraryError extends fixedError(
  'not_found',
  'The library has no video with this ID. List its videos with GET /library/videos.',
) {}

/** What is searched or listed. */
type Filter = Pick<LibraryVideosQueryDto, 'channel' | 'label' | 'language' | 'publishedAfter'>;

interface PassageRow {
  text_id: string;
  language: string;
  published_ms: number;
  first_segment: number;
  end_segment: number;
  total: number;
}

interface TextRow extends KeptTextRow {
  id: string;
  video_id: string;
  video: string;
}

/** The text is in the library of the organization $1, and has what a filter wants: $2 label, $3 channels, $4 language, $5 time. */
const wanted = (text: string): string => `
  ${text}.organization_id = $1 AND ${text}.deleted_at IS NULL AND ($2::text IS NULL OR $2 = ANY (${text}.labels))
    AND ($3::text[] IS NULL OR ${text}.channel_id = ANY ((SELECT library_channels($1, $3))::text[]))`;

const wantedText = (text: string): string => `
  ${wanted(text)} AND ($5::timestamptz IS NULL OR ${text}.published_at >= $5)
    AND ($4::text IS NULL OR EXISTS (SELECT FROM unnest(${text}.languages) has WHERE lower(has) = lower($4) OR lower(has) LIKE lower($4) || '-%'))`;

/** A passage that matches $6. */
const MATCHING = `
  FROM library_passages passage JOIN library_texts text ON text.id = passage.text_id
  WHERE passage.organization_id = $1 AND passage.words @@ $6::tsquery AND ${wanted('text')}
    AND ($4::text IS NULL OR lower(passage.language) = lower($4) OR lower(passage.language) LIKE lower($4) || '-%')
    AND ($5::timestamptz IS NULL OR passage.published_at >= $5)`;

const COLUMNS = `text_id, language, (extract(epoch FROM published_at) * 1000)::double precision AS published_ms, first_segment, end_segment`;
const OWN_COLUMNS = COLUMNS.replaceAll(/(text_id|language|published_at|first_segment|end_segment)/g, 'passage.$1');

/** $7 count, $8 rank of the first one. */
const BY_RELEVANCE = `
  WITH found AS MATERIALIZED (
    SELECT passage.* ${MATCHING} ORDER BY passage.published_at DESC, passage.text_id DESC LIMIT ${CANDIDATES_MAX}
  )
  SELECT ${COLUMNS}, (SELECT least(count(*), ${TOTAL_MAX})::integer FROM found) AS total
    FROM found ORDER BY ts_rank_cd('{1,1,1,1}', words, $6::tsquery) DESC, published_at DESC, text_id DESC, first_segment, language
    LIMIT $7 OFFSET $8`;

/** $7 count, $8 to $11 the place of the passage before the first one, null for none. */
const NEWEST = `
  SELECT page.*, (SELECT count(*)::integer FROM (SELECT ${MATCHING} LIMIT ${TOTAL_MAX}) counted) AS total FROM (
    SELECT ${OWN_COLUMNS} ${MATCHING} AND ($8::double precision IS NULL OR passage.published_at <= to_timestamp($8 / 1000)
        AND (passage.published_at < to_timestamp($8 / 1000) OR passage.text_id < $9::bigint
          OR passage.text_id = $9::bigint AND (passage.first_segment, passage.language) > ($10::integer, $11::text)))
      ORDER BY passage.published_at DESC, passage.text_id DESC, passage.first_segment, passage.language LIMIT $7
  ) page`;

const TEXTS = `
  SELECT id, video_id, video, entry, entry_bytes, entry_crc FROM library_texts
    WHERE organization_id = $1 AND id = ANY ($2) AND deleted_at IS NULL ORDER BY id`;

/** A video as the newest text that is wanted has it, with the languages and labels of all. $6 count, $7 and $8 the place before. */
const VIDEOS = `
  SELECT text.id, text.video_id, text.video, text.kept_at, (extract(epoch FROM text.published_at) * 1000)::double precision AS published_ms,
         ARRAY(SELECT each.id FROM library_texts each
           WHERE each.organization_id = $1 AND each.video_id = text.video_id AND each.deleted_at IS NULL ORDER BY 1) AS text_ids,
         ARRAY(SELECT DISTINCT unnest(each.languages) FROM library_texts each
           WHERE each.organization_id = $1 AND each.video_id = text.video_id AND each.deleted_at IS NULL ORDER BY 1) AS languages,
         ARRAY(SELECT DISTINCT unnest(each.labels) FROM library_texts each
           WHERE each.organization_id = $1 AND each.video_id = text.video_id AND each.deleted_at IS NULL ORDER BY 1) AS labels
    FROM library_texts text WHERE ${wantedText('text')}
      AND ($7::double precision IS NULL OR (text.published_at, text.id) < (to_timestamp($7 / 1000), $8::bigint))
      AND NOT EXISTS (SELECT FROM library_texts other
        WHERE other.video_id = text.video_id AND other.id > text.id AND ${wantedText('other')})
    ORDER BY text.published_at DESC, text.id DESC LIMIT $6`;

interface VideoRow {
  id: string;
  video_id: string;
  video: string;
  kept_at: Date;
  published_ms: number;
  text_ids: string[];
  languages: string[];
  labels: string[];
}

/** $4 who deletes it, $5 what, as the audit trail names it. */
const DELETE = `
  WITH deleted AS MATERIALIZED (SELECT library_delete($1, $2, $3) AS videos)
  SELECT videos, CASE WHEN videos > 0 THEN audit_record($4, 'library.deleted', $1, $5, jsonb_build_object('videos', videos), NULL) END
    FROM deleted`;

const StoredVideo = KeptVideo.extend({ channel: Channel.partial({ handle: true }).nullable() });

/** Searches, lists, exports and deletes what an organization keeps. */
@Injectable()
export class LibraryService {
  constructor(
    private readonly database: DataSource,
    private readonly rate: CallRate,
    private readonly memory: ResponseMemory,
  ) {}

  /**
   * The passages that a query finds. Counts as so many calls as it reads texts for.
   *
   * @throws InvalidRequestError | UnknownCursorError
   */
  async search(caller: Caller, query: LibrarySearchQueryDto): Promise<SearchResultsDto> {
    const { id: organizationId } = caller.organization;
    const parsed = parseQuery(query.q);
    const { limit, after, sort } = query;
    const values = [...filterValues(organizationId, query), parsed.condition, limit + 1];
    const place = sort === 'newest' ? placeOf(after, NEWEST_CURSOR) : placeOf(after, RANK_CURSOR);
    const [first = 0] = place ?? [];
    const rows = await queryWithDeadline<PassageRow[]>(
      this.database,
      sort === 'newest' ? NEWEST : BY_RELEVANCE,
      sort === 'newest' ? [...values, ...(place ?? [null, null, null, null])] : [...values, first],
    );
    const page = rows.slice(0, limit);
    const texts = await this.texts(organizationId, [...new Set(page.map(({ text_id }) => text_id))]);
    const results: SearchResult[] = [];
    for (const row of page) {
      const text = texts.get(row.text_id);
      const segments = text?.transcript.get(row.language);
      if (!text || !segments) continue;
      await nextTurn();
      const { start, text: excerpt, matches, firstMatch } = excerptOf(segments, row, parsed);
      results.push({
        ...{ videoId: text.videoId, title: text.video.title, channel: channelOf(text.video) },
        publishedAt: text.video.publishedAt,
        ...{ language: row.language, generated: text.video.tracks[row.language]?.generated ?? null, start },
        ...{ url: secondUrl(text.videoId, firstMatch), text: excerpt, matches },
      });
    }
    const last = rows.length > limit ? page.at(-1) : undefined;
    const next = sort === 'newest' ? last && newestCursor(last) : last && String(Number(first) + limit);
    const bytes = [...texts.values()].reduce((sum, text) => sum + text.bytes, 0);
    const calls = Math.ceil(bytes / BYTES_PER_CALL);
    if (calls > 1) await this.rate.count(caller, { calls: calls - 1 });
    return { results, next: next ?? null, total: rows[0]?.total ?? 0 };
  }

  /** A page of the videos, newest first, without their texts. @throws UnknownCursorError */
  async videos(organizationId: string, query: LibraryVideosQueryDto): Promise<LibraryVideosDto> {
    const limit = Math.min(query.limit ?? PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX);
    const { items, next } = await this.page(organizationId, { ...query, limit });
    return { videos: items.flatMap((row) => toVideo(row) ?? []), next };
  }

  /**
   * Reads all videos, or as many as the limit, with their texts as lines of documents. Each is read when the reader has taken the former.
   *
   * @throws InvalidRequestError | UnknownCursorError | ServiceUnavailableError when too much memory waits for slow readers
   */
  async documents(organizationId: string, query: LibraryVideosQueryDto): Promise<AsyncGenerator<string>> {
    this.memory.refuseWhenFull(organizationId);
    return this.documentsFrom(
      await this.page(organizationId, { ...query, limit: PAGE_SIZE_MAX }),
      organizationId,
      query,
    );
  }

  private async *documentsFrom(
    first: Page<VideoRow>,
    organizationId: string,
    { limit = Infinity, chunkSeconds, ...query }: LibraryVideosQueryDto,
  ): AsyncGenerator<string> {
    let missing = limit;
    for (let page = first; ;) {
      for (const row of page.items.slice(0, missing)) {
        const entry = await this.entryOf(organizationId, row, query);
        if (entry) yield documentLines(await documentsOf(entry, { chunkSeconds }), cursorOf(row));
      }
      missing -= page.items.length;
      if (missing <= 0 || page.next === null) return;
      page = await this.page(organizationId, { ...query, after: page.next, limit: PAGE_SIZE_MAX });
    }
  }

  /** The texts of a video in the languages that are wanted, each language once; undefined when they were deleted meanwhile. */
  private async entryOf(
    organizationId: string,
    row: VideoRow,
    { language }: Filter,
  ): Promise<Entry<Transcript> | undefined> {
    const texts = [...(await this.texts(organizationId, row.text_ids)).values()].reverse();
    const [newest] = texts;
    if (!newest) return undefined;
    const isWanted = (code: string): boolean =>
      language === undefined || `${code}-`.toLowerCase().startsWith(`${language}-`.toLowerCase());
    const { videoId } = newest;
    return {
      ...{ videoId, ok: true, cached: true },
      metadata: metadataOf(unlistedVideo(videoId), newest.video, { withChannel: true, include: ['chapters'] }),
      transcript: new Map(texts.flatMap(({ transcript }) => [...transcript].filter(([code]) => isWanted(code)))),
      tracks: Object.assign({}, ...texts.map(({ video }) => video.tracks)) as TextTracks,
    };
  }

  /** @throws UnknownCursorError */
  private async page(
    organizationId: string,
    { limit, after, ...filter }: Filter & { limit: number; after?: string | undefined },
  ): Promise<Page<VideoRow>> {
    const place = placeOf(after, VIDEO_CURSOR) ?? [null, null];
    const values = [...filterValues(organizationId, filter), limit + 1, ...place];
    return toPage(await queryWithDeadline<VideoRow[]>(this.database, VIDEOS, values), limit, cursorOf);
  }

  /** Deletes what is kept of a video. @param reference its ID or URL @throws NotInLibraryError */
  async deleteVideo(organizationId: string, reference: string, actor: Actor): Promise<void> {
    const videoId = parseVideoReference(reference);
    const videos = videoId === undefined ? 0 : await this.delete(organizationId, { videoId }, videoId, actor);
    if (videos === 0) throw new NotInLibraryError();
  }

  /** Deletes what is kept of a channel. @param channel as `wantedValues` has it */
  async deleteChannel(organizationId: string, channel: string, actor: Actor): Promise<DeletedVideosDto> {
    const [, channels] = wantedValues({ channel });
    return { videos: await this.delete(organizationId, { channels }, channel, actor) };
  }

  private async delete(
    organizationId: string,
    { videoId = null, channels = null }: { videoId?: string | null; channels?: string[] | null },
    target: string,
    actor: Actor,
  ): Promise<number> {
    const values = [organizationId, videoId, channels, actor, target];
    const [row] = await queryWithDeadline<{ videos: number }[]>(this.database, DELETE, values, organizationId);
    return row?.videos ?? 0;
  }

  /** Texts in the order of their IDs, some of which can have been deleted meanwhile. */
  private async texts(organizationId: string, ids: readonly string[]): Promise<Map<string, ReadText>> {
    const found = await queryWithDeadline<TextRow[]>(this.database, TEXTS, [organizationId, ids]);
    const texts = new Map<string, ReadText>();
    for (const row of found) {
      const video = fromJson(Buffer.from(row.video), StoredVideo);
      if (!video) continue;
      const transcript = await readTranscript(await inflate(textOfRow(row)));
      texts.set(row.id, { videoId: row.video_id, video, bytes: row.entry_bytes, transcript });
    }
    return texts;
  }
}
type StoredVideo = ReturnType<typeof StoredVideo.parse>;

interface ReadText {
  videoId: string;
  video: StoredVideo;
  bytes: number;
  transcript: Transcript;
}

/** $1 to $5 of the statements. */
function filterValues(organizationId: string, { channel, label, language, publishedAfter }: Filter): unknown[] {
  const [, channels] = wantedValues({ channel });
  const pair = label === undefined ? undefined : Object.entries(labelOf(label))[0]?.join(':');
  return [organizationId, pair ?? null, channels, language ?? null, publishedAfter ?? null];
}

const RANK_CURSOR = /^([0-9]{1,4})$/;
const NEWEST_CURSOR = /^(-?[0-9]{1,15})\.([0-9]{1,18})\.([0-9]{1,9})\.([A-Za-z0-9-]{1,40})$/;
const VIDEO_CURSOR = /^(-?[0-9]{1,15})\.([0-9]{1,18})$/;

const cursorOf = ({ published_ms, id }: VideoRow): string => `${published_ms}.${id}`;

const newestCursor = ({ published_ms, text_id, first_segment, language }: PassageRow): string =>
  [published_ms, text_id, first_segment, language].join('.');

/** @throws UnknownCursorError */
function placeOf(after: string | undefined, form: RegExp): string[] | undefined {
  if (after === undefined) return undefined;
  const [, ...place] = form.exec(after) ?? [];
  if (place.length === 0) throw new UnknownCursorError(after);
  return place;
}

function channelOf({ channel }: StoredVideo): Channel | null {
  return channel && { id: channel.id, name: channel.name, handle: channel.handle ?? null };
}

function toVideo({ video_id: videoId, video, kept_at, languages, labels }: VideoRow): LibraryVideo | undefined {
  const stored = fromJson(Buffer.from(video), StoredVideo);
  if (!stored) return undefined;
  const { title, publishedAt, durationSeconds } = stored;
  return {
    ...{ videoId, title, url: `https://www.youtube.com/watch?v=${videoId}`, channel: channelOf(stored) },
    ...{ publishedAt, durationSeconds, languages, labels, keptAt: kept_at.toISOString() },
  };
}
