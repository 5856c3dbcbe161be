import { Injectable } from '@nestjs/common';
import type { ChannelReference } from '../../../domain/channel-reference.js';
import { ChannelNotFoundError, type UpstreamError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import { ContinuationRejectedError, type UploadsListPage } from '../../video-platform.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { CHANNEL_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { isJsonError, upstreamError } from './channel-errors.js';
import { type ChannelPage, findHandle, readChannelPage, readResolvedUrl } from './channel-page.js';
import { PlaylistReader } from './playlist-reader.js';

/** A reference that has to be resolved to an ID. */
type NamedReference = Exclude<ChannelReference, { kind: 'id' }>;

/** A name that exists: when it is not found either, the request itself is at fault. */
const KNOWN_URL = `${YOUTUBE_ORIGIN}/@youtube`;

/** How many redirects to another name or channel are followed. */
const REDIRECTS_MAX = 3;

/** Far above any channel: a list that is still not at its end repeats itself, and ends there. */
const PAGES_MAX = 5_000;

/** `<number of the page, from 1>:<the platform's token>`. */
const CONTINUATION = /^([1-9]\d{0,5}):(.+)$/s;

/** The page of a channel that exists, and the ID that it was found under. */
interface FoundPage {
  channelId: string;
  page: Exclude<ChannelPage, { kind: 'moved' | 'terminated' }>;
}

/** Reads channels and their uploads through one egress. Throws `ChannelNotFoundError` and `UpstreamError`. */
@Injectable()
export class ChannelReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly playlists: PlaylistReader,
  ) {}

  /** The ID of a channel that is named by its URL. */
  async resolve(reference: NamedReference, scope: RequestScope): Promise<string> {
    let current = reference;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      const url = addressOf(current);
      const response = await this.requestUrl(url, scope);
      const resolved = isJsonError(response, 404) ? null : valueOf(response, url);
      if (resolved === null) throw new ChannelNotFoundError(new Error(`${url} is not the URL of a channel`));
      if (resolved.kind === 'id') return resolved.id;
      current = resolved;
    }
    throw tooManyRedirects(addressOf(reference));
  }

  async read(requestedId: string, scope: RequestScope): Promise<Channel> {
    const { channelId, page } = await this.page(requestedId, scope);
    if (page.kind === 'channel') return page.channel;
    // The age gate hides the handle and sometimes the name, but the list of uploads links to the channel with each video. It
    // is requested without a field mask, because none selects these links.
    const payload = { browseId: `VLUU${channelId.slice(2)}` };
    const call = { kind: 'owner', client: 'WEB', path: 'browse', payload, fields: null } as const;
    const response = await this.innertube.query(call, (list) => findHandle(list, channelId), scope);
    const handle = response.kind === 'parsed' ? response.value : null;
    return { id: channelId, name: page.name ?? handle ?? '', handle };
  }

  /** Lists at least `count` of the newest uploads, or all. */
  async uploads(channelId: string, count: number, scope: RequestScope): Promise<UploadsListPage> {
    const list = await this.playlists.uploads(channelId, count, scope);
    if (list !== null) return list;
    // Without the playlist the channel has no uploads, has moved to another ID or does not exist.
    const found = await this.page(channelId, scope);
    const moved = found.channelId === channelId ? null : await this.playlists.uploads(found.channelId, count, scope);
    return moved ?? { uploads: [], next: null };
  }

  /** @param continuation as in `VideoPlatform.listUploadsPage`, which states what is thrown */
  async uploadsPage(
    channelId: string,
    continuation: string | undefined,
    scope: RequestScope,
  ): Promise<UploadsListPage> {
    const [, number = '1', token] = CONTINUATION.exec(continuation ?? '') ?? [];
    const page =
      continuation === undefined
        ? await this.uploads(channelId, 1, scope)
        : token !== undefined && (await this.playlists.nextUploads(channelId, token, scope));
    if (!page) throw new ContinuationRejectedError();
    const { uploads, next } = page;
    if (next !== null && Number(number) < PAGES_MAX) return { uploads, next: `${Number(number) + 1}:${next}` };
    if (next !== null) report('warn', 'youtube_uploads_cut', { channelId, pages: PAGES_MAX });
    return { uploads, next: null };
  }

  private async page(requestedId: string, scope: RequestScope): Promise<FoundPage> {
    let channelId = requestedId;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      const payload = { browseId: channelId };
      const call = { kind: 'channel', client: 'WEB', path: 'browse', payload, fields: CHANNEL_FIELDS } as const;
      const response = await this.innertube.query(call, readChannelPage, scope);
      if (isJsonError(response, 400)) await this.checkVersion(channelId, scope);
      if (isJsonError(response, 400, 404) || (response.kind === 'parsed' && response.value.kind === 'terminated'))
        throw new ChannelNotFoundError(new Error(`${channelId} is terminated or does not exist`));
      const page = valueOf(response, channelId);
      if (page.kind === 'channel' || page.kind === 'age-gated') return { channelId, page };
      if (page.kind === 'moved') channelId = page.channelId;
    }
    throw tooManyRedirects(requestedId);
  }

  /** 400 was recorded for an invalid ID, but a version of WEB that is no longer served gets it for every request. */
  private async checkVersion(subject: string, scope: RequestScope): Promise<void> {
    const known = await this.requestUrl(KNOWN_URL, scope);
    if (known.kind !== 'parsed' && !isJsonError(known, 404)) throw upstreamError(known, subject);
  }

  /** Requests the channel of a URL: null for a URL that is not a channel's, HTTP 404 for an unknown one. */
  private requestUrl(url: string, scope: RequestScope): Promise<ParsedResponse<ChannelReference | null>> {
    const path = 'navigation/resolve_url';
    const call = { kind: 'resolve', client: 'WEB', path, payload: { url }, fields: null } as const;
    return this.innertube.query(call, readResolvedUrl, scope);
  }
}

function valueOf<T>(response: ParsedResponse<T>, subject: string): T {
  if (response.kind === 'parsed') return response.value;
  if (response.kind === 'unparsable') report('warn', 'youtube_unreadable', { subject, expected: response.expected });
  throw upstreamError(response, subject);
}

function tooManyRedirects(subject: string): UpstreamError {
  return upstreamError({ kind: 'unparsable', expected: `at most ${REDIRECTS_MAX} redirects` }, subject);
}

const PATHS = { handle: '@', custom: 'c/', user: 'user/', vanity: '' } as const;

/** The channel's URL in the platform's form; names are percent-encoded. */
export function addressOf(reference: NamedReference): string {
  const name = reference.kind === 'handle' ? reference.handle : reference.name;
  return `${YOUTUBE_ORIGIN}/${PATHS[reference.kind]}${encodeURIComponent(name)}`;
}
