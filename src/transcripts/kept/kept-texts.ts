import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../../config/environment.js';
import { queryWithDeadline } from '../../database/query-with-deadline.js';
import { fromJson } from '../cache/keyed-codec.js';
import type { CachedOutcome } from '../cache/transcript-cache.js';
import type { TranscriptText } from '../cache/transcript-text.js';
import { choiceKey, KeptVideo } from './kept-text.js';

/** The columns of a text. */
export interface KeptTextRow {
  entry: Buffer;
  entry_bytes: number;
  entry_crc: string;
}

export function textOfRow({ entry: deflated, entry_bytes: jsonBytes, entry_crc }: KeptTextRow): TranscriptText {
  return { deflated, jsonBytes, crc32: Number(entry_crc) };
}

const FIND = `
  SELECT DISTINCT ON (video_id) video_id, video, entry, entry_bytes, entry_crc FROM library_texts
    WHERE organization_id = $1 AND video_id = ANY ($2) AND $3 = ANY (choices) AND deleted_at IS NULL ORDER BY video_id, id`;

const BYTES_PER_MEGABYTE = 1024 * 1024;

/** The texts that organizations keep in their libraries. */
@Injectable()
export class KeptTexts {
  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  get bytesMax(): number {
    return this.environment.LIBRARY_MAX_MEGABYTES * BYTES_PER_MEGABYTE;
  }

  /** The texts of videos that an organization keeps in a choice of languages, by their IDs, in one round trip. */
  async find(
    organizationId: string,
    videoIds: readonly string[],
    choice: readonly string[],
  ): Promise<Map<string, CachedOutcome>> {
    if (videoIds.length === 0) return new Map();
    const rows = await queryWithDeadline<(KeptTextRow & { video_id: string; video: string })[]>(this.database, FIND, [
      organizationId,
      videoIds,
      choiceKey(choice),
    ]);
    return new Map(
      rows.flatMap((row): [string, CachedOutcome][] => {
        const video = fromJson(Buffer.from(row.video), KeptVideo);
        if (!video) return [];
        const { tracks, ...details } = video;
        return [[row.video_id, { ok: true, details, tracks, transcript: textOfRow(row) }]];
      }),
    );
  }
}
