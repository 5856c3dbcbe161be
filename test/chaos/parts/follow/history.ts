import { channelByPath } from '../../../fake-youtube/catalogue/catalogue.js';
import type { FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { PublishedState } from '../../../fake-youtube/publish/published-video.js';
import type { RandomSource } from '../../harness/random.js';

/** An upload that was published after the subscriptions began. */
export interface PublishedUpload {
  id: string;
  state: PublishedState;
  /** It was private or deleted after it had been public, so it may have been read then. */
  wasTaken: boolean;
  isDeleted: boolean;
}

const NEW_STATES = [
  'video',
  'video',
  'video',
  'short',
  'uncaptioned',
  'premiere',
  'live',
  'members-only',
  'private',
] as const;
/** What an upload becomes next. */
const NEXT: Partial<Record<PublishedState, PublishedState>> = {
  uncaptioned: 'video',
  premiere: 'video',
  live: 'just-ended',
  'just-ended': 'past-live',
  private: 'video',
  'members-only': 'video',
};
/** Deeper uploads do not become public or change their places: a check reads the list until it meets a seen upload. */
const DEPTH_MAX = 20;
const REVEALED_DEPTH = 40;

/** The random history of a channel, and what has become of each of its uploads. */
export class ChannelHistory {
  readonly id: string;
  /** The uploads from before the start, newest first. */
  readonly former: readonly string[];
  readonly published = new Map<string, PublishedUpload>();
  /** All of them as the channel has them, newest first, with the private ones. */
  private list: string[];
  private hiddenFormer: string | undefined;
  private names = 0;

  constructor(
    private readonly fakeYoutube: FakeYoutube,
    private readonly random: RandomSource,
    handle: string,
  ) {
    const channel = channelByPath(`/${handle}`);
    if (!channel) throw new Error(`There is no channel ${handle}.`);
    this.id = channel.id;
    this.former = channel.uploads().map(({ id }) => id);
    this.list = [...this.former];
  }

  publish(count: number, as: PublishedState = this.random.pick(NEW_STATES)): void {
    this.reveal(REVEALED_DEPTH - Math.min(count, REVEALED_DEPTH));
    const ids = this.fakeYoutube.publish({ channel: this.id, count, as });
    for (const id of ids) this.published.set(id, { id, state: as, wasTaken: false, isDeleted: false });
    this.list.unshift(...ids);
  }

  /** A premiere becomes a video, a live stream ends, captions come, or a private video becomes public. */
  goOn(): void {
    const from = [...this.published.values()].filter(({ state, isDeleted }) => !isDeleted && NEXT[state]);
    if (from.length > 0) this.toNext(this.random.pick(from));
  }

  /** Makes a public upload private; one from before the start too, which becomes public the next time. */
  hide(): void {
    const upload = this.pickTop(({ state }) => state === 'video');
    if (upload) {
      this.change([upload.id], 'private');
      Object.assign(upload, { state: 'private', wasTaken: true });
    }
    if (this.hiddenFormer !== undefined) this.change([this.hiddenFormer], 'video');
    this.hiddenFormer = this.hiddenFormer === undefined ? this.former[0] : undefined;
    if (this.hiddenFormer !== undefined) this.change([this.hiddenFormer], 'private');
  }

  remove(): void {
    const upload = this.pickTop(() => true);
    if (!upload) return;
    this.fakeYoutube.changeVideos({ videoIds: [upload.id], deleted: true });
    this.list = this.list.filter((id) => id !== upload.id);
    Object.assign(upload, { isDeleted: true, wasTaken: true });
  }

  reorder(): void {
    const top = this.list.slice(0, DEPTH_MAX / 2);
    const order = top.map((id) => ({ id, by: this.random.below(1_000) })).sort((one, other) => one.by - other.by);
    this.list.splice(0, order.length, ...order.map(({ id }) => id));
    this.fakeYoutube.changeChannel({ channel: this.id, order: order.map(({ id }) => id) });
  }

  rename(): void {
    const name = `renamed-${this.id.slice(2, 8).toLowerCase()}-${(this.names += 1)}`;
    this.fakeYoutube.changeChannel({ channel: this.id, name, handle: `@${name}` });
  }

  /** Whatever can get a text gets it, and what is private becomes public. */
  settle(): void {
    for (const upload of this.published.values()) while (!upload.isDeleted && NEXT[upload.state]) this.toNext(upload);
  }

  /** Makes private uploads public that are no longer among the first ones. */
  private reveal(depth: number): void {
    for (const id of this.list.slice(depth)) {
      const upload = this.published.get(id);
      if (upload?.state === 'private') this.toNext(upload);
    }
  }

  private toNext(upload: PublishedUpload): void {
    upload.state = NEXT[upload.state] ?? upload.state;
    this.change([upload.id], upload.state);
  }

  private change(videoIds: string[], as: PublishedState): void {
    this.fakeYoutube.changeVideos({ videoIds, as });
  }

  private pickTop(fits: (upload: PublishedUpload) => boolean): PublishedUpload | undefined {
    const top = this.list.slice(0, DEPTH_MAX).flatMap((id) => this.published.get(id) ?? []);
    const fitting = top.filter(fits);
    return fitting.length > 0 ? this.random.pick(fitting) : undefined;
  }
}
