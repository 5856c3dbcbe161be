import type { ChannelReference } from '../../domain/channel-reference.js';
import { ChannelNotFoundError } from '../../domain/errors.js';
import type { Channel } from '../../domain/transcript.js';
import type { UploadsList } from '../video-platform.js';
import { upstreamError } from './channel-errors.js';
import type { ChannelPage } from './channel-page.js';
import { askChannelPage, askResolve, type Told } from './channel-requests.js';
import { type EventLog, report } from './event-log.js';
import type { InnertubeClient, Work } from './innertube-client.js';
import type { PartialResponses } from './partial-responses.js';
import { YOUTUBE_ORIGIN } from './platform-address.js';
import type { UploadsReader } from './uploads-list.js';

type NamedReference = Exclude<ChannelReference, { kind: 'id' }>;

/** Reads channels through one exit. Its methods throw `ChannelNotFoundError` and `UpstreamError`. */
export class ChannelReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly partial: PartialResponses,
    private readonly uploads: UploadsReader,
    private readonly log: EventLog,
  ) {}

  async resolve(reference: NamedReference, work: Work): Promise<string> {
    const url = addressOf(reference);
    const channelId = this.valueOf(await askResolve(this.innertube, url, work), url);
    if (channelId === null) throw new ChannelNotFoundError(new Error(`${url} leads to something else`));
    return channelId;
  }

  async read(channelId: string, work: Work): Promise<Channel> {
    const page = await this.page(channelId, work);
    switch (page.kind) {
      case 'channel':
        return page.channel;
      case 'age-gated':
        return { id: channelId, name: page.name ?? '', handle: null };
      case 'gone':
        throw new ChannelNotFoundError(new Error(`${channelId} is terminated or does not exist`));
    }
  }

  /** A channel without an uploads playlist has no uploads, or is gone: its page says which. */
  async listUploads(channelId: string, count: number, work: Work): Promise<UploadsList> {
    const listed = await this.uploads.list(channelId, count, work);
    if (listed.kind === 'list') return listed.list;
    await this.read(channelId, work);
    return { uploads: [], complete: true };
  }

  private async page(channelId: string, work: Work): Promise<ChannelPage> {
    return this.valueOf(await askChannelPage(this.innertube, this.partial, channelId, work), channelId);
  }

  private valueOf<T>(answer: Told<T>, subject: string): T {
    if (answer.kind === 'told') return answer.value;
    // Recorded: 404 for an unknown handle, 400 for an ID that cannot be one.
    if (answer.kind === 'http-error' && (answer.status === 404 || answer.status === 400)) {
      throw new ChannelNotFoundError(new Error(`${subject}: HTTP ${answer.status}`));
    }
    if (answer.kind === 'misread')
      report(this.log, 'warn', 'youtube_unreadable', { subject, expected: answer.expected });
    throw upstreamError(answer, subject);
  }
}

/** The address as the platform writes it; names of any script are percent-encoded. */
export function addressOf(reference: NamedReference): string {
  switch (reference.kind) {
    case 'handle':
      return `${YOUTUBE_ORIGIN}/@${encodeURIComponent(reference.handle)}`;
    case 'custom':
      return `${YOUTUBE_ORIGIN}/c/${encodeURIComponent(reference.name)}`;
    case 'user':
      return `${YOUTUBE_ORIGIN}/user/${encodeURIComponent(reference.name)}`;
    case 'vanity':
      return `${YOUTUBE_ORIGIN}/${encodeURIComponent(reference.name)}`;
  }
}
