import * as catalogue from '../catalogue/catalogue.js';
import type { Channel, Video } from '../catalogue/model.js';
import { type Playlist, playlistById } from '../catalogue/playlists.js';
import { inState, newVideo, type PublishedState } from './published-video.js';

/** Videos that are published on a channel. */
export interface Publication {
  /** The ID or the handle of any channel. */
  channel: string;
  /** Default 1. */
  count?: number | undefined;
  /** Default `video`. */
  as?: PublishedState | undefined;
  /** How many uploads of the list stay above them; default 0. */
  below?: number | undefined;
  title?: string | undefined;
  /** Of the newest; each further one is a minute older. Default: now. */
  publishedAt?: Date | undefined;
}

/** What happens to videos: another state, or their end. */
export type VideoChange = { videoIds: readonly string[] } & ({ as: PublishedState } | { deleted: true });

/** What happens to a channel. */
export interface ChannelChange {
  /** Its ID or handle. */
  channel: string;
  name?: string | undefined;
  handle?: string | undefined;
  terminated?: boolean | undefined;
  /** The videos at the top of the list, in this order; the others follow in theirs. */
  order?: readonly string[] | undefined;
}

/** What a playlist has from then on. */
export interface PlaylistChange {
  /** Its ID. */
  playlist: string;
  videoIds: readonly string[];
}

/** The instruction names what does not exist; the message says what. */
export class UnknownNameError extends Error {}

/** An upload of a changed channel: what it was first, and what it is now. */
interface Upload {
  readonly original: Video;
  current: Video;
  isListed: boolean;
}

/** A channel that was changed. */
interface Changed {
  /** With the names that it has now. */
  channel: Channel;
  uploads: Upload[];
  readonly deleted: Map<string, Video>;
  isTerminated: boolean;
  /** Changes with each change, so that no response of an earlier state is repeated. */
  revision: number;
}

const MINUTE_MS = 60_000;

/** Of all servers of this process, which share the rendered responses. */
let revisions = 0;

/** The catalogue as it is now on one server: with what was published, changed and deleted since its start. */
export class CurrentCatalogue {
  private readonly changed = new Map<string, Changed>();
  private readonly playlists = new Map<string, { videoIds: readonly string[]; revision: number }>();
  /** The channel of each video of a changed channel. */
  private readonly channelIds = new Map<string, string>();

  /** Publishes videos and returns their IDs, newest first. */
  publish({ channel, count = 1, as = 'video', below = 0, title = 'A new film', publishedAt }: Publication): string[] {
    const changed = this.change(channel);
    // The platform states whole seconds.
    const newestMs = Math.floor((publishedAt ?? new Date()).getTime() / 1_000) * 1_000;
    const uploads = Array.from({ length: count }, (_, index) => {
      const original = newVideo(title, new Date(newestMs - index * MINUTE_MS));
      return { original, current: inState(original, as), isListed: as !== 'private' };
    });
    changed.uploads.splice(below, 0, ...uploads);
    for (const { original } of uploads) this.channelIds.set(original.id, changed.channel.id);
    return uploads.map(({ original }) => original.id);
  }

  /** Changes the state of videos, which keep their places in the list, or deletes them. */
  changeVideos(change: VideoChange): void {
    for (const id of change.videoIds) {
      const changed = this.change(this.videoById(id)?.channel.id ?? '', `video ${id}`);
      const upload = changed.uploads.find(({ original }) => original.id === id);
      if (!upload) throw new UnknownNameError(`There is no video ${id}`);
      if ('deleted' in change) {
        changed.uploads = changed.uploads.filter((each) => each !== upload);
        changed.deleted.set(id, deleted(upload.original));
      } else {
        upload.current = inState(upload.original, change.as);
        upload.isListed = change.as !== 'private';
      }
    }
  }

  /** Renames, terminates or restores a channel, or changes the order of its uploads. */
  changeChannel({ channel, name, handle, terminated, order = [] }: ChannelChange): void {
    const changed = this.change(channel);
    changed.channel = {
      ...changed.channel,
      ...(name !== undefined && { name }),
      ...(handle !== undefined && { handle }),
    };
    changed.isTerminated = terminated ?? changed.isTerminated;
    const first = order.map((id) => {
      const upload = changed.uploads.find(({ original }) => original.id === id);
      if (!upload) throw new UnknownNameError(`There is no video ${id} on ${channel}`);
      return upload;
    });
    changed.uploads = [...new Set([...first, ...changed.uploads])];
  }

  /** Changes which videos a playlist has. */
  changePlaylist({ playlist, videoIds }: PlaylistChange): void {
    if (!playlistById(playlist)) throw new UnknownNameError(`There is no playlist ${playlist}`);
    revisions += 1;
    this.playlists.set(playlist, { videoIds, revision: revisions });
  }

  /** Undoes everything. */
  reset(): void {
    this.changed.clear();
    this.playlists.clear();
    this.channelIds.clear();
  }

  channelById(id: string): Channel | undefined {
    const changed = this.changed.get(id);
    return changed ? currentOf(changed) : catalogue.channelById(id);
  }

  /** As in the catalogue; a channel that was renamed is not found under its former handle. */
  channelByPath(path: string): Channel | undefined {
    const [first = ''] = path.split('/').slice(1).map(catalogue.comparable);
    for (const changed of this.changed.values())
      if (catalogue.comparable(changed.channel.handle ?? '') === first) return currentOf(changed);
    const found = catalogue.channelByPath(path);
    const changed = found && this.changed.get(found.id);
    if (!changed) return found;
    return first.startsWith('@') && changed.channel.handle !== found.handle ? undefined : currentOf(changed);
  }

  videoById(id: string): { channel: Channel; video: Video } | undefined {
    const found = catalogue.videoById(id);
    const changed = this.changed.get(this.channelIds.get(id) ?? found?.channel.id ?? '');
    if (!changed) return found;
    const video = changed.deleted.get(id) ?? changed.uploads.find(({ original }) => original.id === id)?.current;
    return video && { channel: currentOf(changed), video: changed.isTerminated ? deleted(video) : video };
  }

  /** A playlist lists what its videos are now; deleted ones stay in it. */
  playlistById(id: string): Playlist | undefined {
    const playlist = playlistById(id);
    if (!playlist) return undefined;
    const ids = this.playlists.get(id)?.videoIds;
    const listed = () => ids?.flatMap((videoId) => this.videoById(videoId)?.video ?? []) ?? playlist.videos();
    const videos = () => listed().map((video) => this.videoById(video.id)?.video ?? video);
    return { ...playlist, owner: this.channelById(playlist.owner.id) ?? playlist.owner, videos };
  }

  /** Part of the key of a cached response: of a channel and its videos, or of anything. The ages of new videos change. */
  revision(channelId?: string): string {
    const seconds = Math.floor(Date.now() / 1_000);
    const changed = channelId === undefined ? [...this.changed.values()] : [this.changed.get(channelId)];
    const lists = channelId === undefined ? [...this.playlists.values()].map(({ revision }) => `p${revision}`) : [];
    return [...changed.map((each) => (each ? `r${each.revision}@${seconds}` : '')), ...lists].join(':');
  }

  /** The channel that is about to be changed. */
  private change(name: string, what = `channel ${name}`): Changed {
    const channel = name.startsWith('@') ? this.channelByPath(`/${name}`) : this.channelById(name);
    if (!channel) throw new UnknownNameError(`There is no ${what}`);
    const changed = this.changed.get(channel.id) ?? {
      channel,
      uploads: channel.uploads().map((video) => ({ original: video, current: video, isListed: true })),
      deleted: new Map<string, Video>(),
      isTerminated: channel.state === 'terminated',
      revision: 0,
    };
    revisions += 1;
    changed.revision = revisions;
    this.changed.set(channel.id, changed);
    return changed;
  }
}

function currentOf({ channel, uploads, isTerminated }: Changed): Channel {
  if (isTerminated) return { ...channel, state: 'terminated', uploadsPlaylist: 'missing', uploads: () => [] };
  const listed = () => uploads.filter(({ isListed }) => isListed).map(({ current }) => current);
  // The platform creates the list with the first upload.
  const uploadsPlaylist = uploads.length > 0 ? 'present' : channel.uploadsPlaylist;
  const state = channel.state === 'terminated' ? 'ok' : channel.state;
  return { ...channel, state, uploadsPlaylist, uploads: listed };
}

function deleted(video: Video): Video {
  return { ...inState(video, 'uncaptioned'), state: 'deleted' };
}
