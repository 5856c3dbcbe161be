import { Injectable } from '@nestjs/common';
import { PlaylistNotFoundError } from '../../../domain/errors.js';
import type { Upload, VideoKind } from '../../../domain/transcript.js';
import type { PlaylistVideos } from '../../video-platform.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { PlaylistPages } from './playlist-pages.js';

/** Reads playlists through one egress. */
@Injectable()
export class PlaylistReader {
  constructor(private readonly pages: PlaylistPages) {}

  /** Lists at least `count` videos, or all; throws `PlaylistNotFoundError` and `UpstreamError`. */
  async list(playlistId: string, count: number, scope: RequestScope): Promise<PlaylistVideos> {
    const { header, list } = await this.pages.read('playlist', playlistId, count, scope);
    if (list === null) {
      const state = header.isPrivate ? 'is private' : 'does not exist';
      throw new PlaylistNotFoundError(
        header.isPrivate ? 'private' : 'unknown',
        new Error(`The playlist ${playlistId} ${state}`),
      );
    }
    return {
      playlist: { id: playlistId, title: header.title },
      uploads: withListKind(list.uploads, playlistId),
      complete: list.complete,
    };
  }
}

/** Lists that the platform makes of one kind of a channel's uploads. */
const LIST_KIND = /^UU(SH|LF|LV)[A-Za-z0-9_-]{22}$/;
const KINDS: Readonly<Record<string, VideoKind>> = { SH: 'short', LF: 'video', LV: 'video' };

/** Sets the kind of videos in a list of one kind, whose entries do not state it. */
export function withListKind(uploads: readonly Upload[], playlistId: string): Upload[] {
  const listKind = KINDS[LIST_KIND.exec(playlistId)?.[1] ?? ''] ?? null;
  return uploads.map((upload) => ({ ...upload, kind: upload.kind ?? listKind }));
}
