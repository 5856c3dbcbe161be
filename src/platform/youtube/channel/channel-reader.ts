import type { ChannelReference } from '../../../domain/channel-reference.js';
import { ChannelNotFoundError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import type { UploadsList } from '../../video-platform.js';
import { upstreamError } from './channel-errors.js';
import type { ChannelPage } from './channel-page.js';
import { askChannelPage, askListOwner, askResolve } from './channel-requests.js';
import { type EventLog, report } from '../event-log.js';
import type { InnertubeClient, Work } from '../innertube/innertube-client.js';
import type { Told } from '../innertube/field-mask-request.js';
import type { PartialResponses } from '../innertube/field-mask-support.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import type { UploadsReader } from './uploads-reader.js';

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
        return this.behindGate(channelId, page.name, work);
      case 'gone':
        throw gone(channelId);
    }
  }

  /** A channel without an uploads playlist has no uploads, or is gone: its page says which. */
  async listUploads(channelId: string, count: number, work: Work): Promise<UploadsList> {
    const list = await this.uploads.list(channelId, count, work);
    if (list !== null) return list;
    if ((await this.page(channelId, work)).kind === 'gone') throw gone(channelId);
    return { uploads: [], complete: true };
  }

  /** The gate hides the handle, and at times the name; the list of uploads has both beside each video. */
  private async behindGate(channelId: string, name: string | null, work: Work): Promise<Channel> {
    const owner = await askListOwner(this.innertube, channelId, work);
    return { id: channelId, name: name ?? owner?.name ?? owner?.handle ?? '', handle: owner?.handle ?? null };
  }

  private async page(channelId: string, work: Work): Promise<ChannelPage> {
    return this.valueOf(await askChannelPage(this.innertube, this.partial, channelId, work), channelId);
  }

  private valueOf<T>(answer: Told<T>, subject: string): T {
    if (answer.kind === 'told') return answer.value;
    // Recorded: 404 for an unknown handle, 400 for an ID that cannot be one, both as JSON. A page that says so is that of
    // a gateway, or of another server than the one that knows.
    if (answer.kind === 'http-error' && answer.media === 'json' && (answer.status === 404 || answer.status === 400)) {
      throw new ChannelNotFoundError(new Error(`${subject}: HTTP ${answer.status}`));
    }
    if (answer.kind === 'misread')
      report(this.log, 'warn', 'youtube_unreadable', { subject, expected: answer.expected });
    throw upstreamError(answer, subject);
  }
}

function gone(channelId: string): ChannelNotFoundError {
  return new ChannelNotFoundError(new Error(`${channelId} is terminated or does not exist`));
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
