import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { Environment } from '../../config/environment.js';
import { PlaylistNotFoundError, invalidField } from '../../domain/errors.js';
import { parsePlaylistReference, UNREADABLE_LISTS } from '../../domain/references/playlist-reference.js';
import { Playlist, type Upload } from '../../domain/transcript.js';
import { type ReadingContext, VideoPlatform } from '../../platform/video-platform.js';
import type { RequestContext } from '../../http/server/request-context.js';
import { readWithinDeadline } from '../call.js';
import { CACHE_FORMAT } from '../cache/keyed-codec.js';
import { ReadThroughCache } from '../cache/read-through-cache.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import { countedListFields } from './channel-uploads.js';
import {
  type CountedList,
  type Dated,
  isYoungerThan,
  LAST_READ_SECONDS,
  lastList,
  listFrom,
  reaches,
  readCounted,
  readSelection,
  type Selection,
} from './counted-list.js';
import type { VideoSource } from './video-list.js';

interface PlaylistVideos extends CountedList, Dated {
  playlist: Playlist;
  /** As for `ListHeader`; not stored. */
  listedAt?: string;
}
const playlistVideosSchema: z.ZodType<PlaylistVideos> = z.object({
  ...countedListFields,
  playlist: Playlist,
  // An entry of the former version has none: it is read anew.
  readAtMs: z.number().default(0),
});

type PlaylistSelection = Omit<Selection, 'since'>;

export interface PlaylistWithVideos {
  playlist: Playlist;
  /** As for `ListHeader`. */
  listedAt: string | undefined;
  uploads: Upload[];
}

/** The source of a playlist's videos. Reads from the platform are cached; concurrent calls share a request. */
@Injectable()
export class PlaylistSource {
  private readonly lists: ReadThroughCache<PlaylistVideos>;

  constructor(
    @Inject(CACHE_MANAGER) cache: Cache,
    private readonly platform: VideoPlatform,
    private readonly environment: Environment,
    metrics: TranscriptMetrics,
  ) {
    const storedSeconds = Math.max(environment.UPLOADS_TTL_SECONDS, LAST_READ_SECONDS);
    this.lists = new ReadThroughCache('playlist', storedSeconds, playlistVideosSchema, cache, metrics);
  }

  /**
   * The first videos of a playlist as the source of a call.
   *
   * @param reference the playlist as the caller names it
   * @throws PlaylistNotFoundError | InvalidRequestError when the text names no playlist that can be read
   */
  source(reference: string, selection: PlaylistSelection): VideoSource {
    const id = playlistId(reference, 'id');
    return async (context) => {
      const { playlist, listedAt, uploads } = await this.list(id, selection, context);
      return { header: { type: 'playlist', playlist, listedAt }, resource: playlist.id, uploads };
    };
  }

  /** Lists them within the deadline of a call of its own. @throws as `source`, and UpstreamError */
  async listWithinDeadline(
    reference: string,
    selection: PlaylistSelection,
    context: RequestContext,
  ): Promise<PlaylistWithVideos> {
    const id = playlistId(reference, 'id');
    return readWithinDeadline(context, this.environment, (call) => this.list(id, selection, call));
  }

  /** The first videos of a playlist, in its order, those of a selection. */
  private async list(id: string, selection: PlaylistSelection, context: ReadingContext): Promise<PlaylistWithVideos> {
    const isFresh = (list: PlaylistVideos) => isYoungerThan(this.environment.UPLOADS_TTL_SECONDS, list);
    const { list, uploads } = await readSelection(selection, (count) =>
      this.lists.get(
        `${CACHE_FORMAT}:playlist:${id}`,
        context,
        (shared, known) => {
          const pageAfter = (after?: string) => this.platform.playlist(id, after, shared);
          const first = async () => {
            const page = await pageAfter();
            return { ...listFrom(page), playlist: page.playlist ?? { id, title: null }, readAtMs: Date.now() };
          };
          return readCounted(count, known && isFresh(known) ? known : undefined, first, pageAfter);
        },
        {
          serves: (known) => isFresh(known) && reaches(known, count),
          purpose: String(count),
          whenRefused: (known) => lastList(known, count),
        },
      ),
    );
    const { playlist, listedAt } = list;
    return { playlist, listedAt, uploads };
  }
}

/**
 * The ID of a playlist.
 *
 * @param field that has the text
 * @throws PlaylistNotFoundError | InvalidRequestError when the text names no playlist that can be read
 */
export function playlistId(text: string, field: string): string {
  const reference = parsePlaylistReference(text);
  if (!reference) throw new PlaylistNotFoundError();
  if (reference.kind !== 'playlist') throw invalidField(field, UNREADABLE_LISTS[reference.kind]);
  return reference.id;
}
