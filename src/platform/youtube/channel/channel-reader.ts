import { Injectable } from '@nestjs/common';
import type { ChannelReference } from '../../../domain/channel-reference.js';
import { ChannelNotFoundError, type UpstreamError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { Attempt } from '../egress/attempt.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { CHANNEL_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { isJsonError, upstreamError } from './channel-errors.js';
import { type ChannelPage, findHandle, readChannelPage, readResolvedUrl } from './channel-page.js';

type NamedReference = Exclude<ChannelReference, { kind: 'id' }>;

const REDIRECTS_MAX = 3;

/** The page of a channel that exists, and the ID that it was found under. */
interface FoundPage {
  channelId: string;
  page: Exclude<ChannelPage, { kind: 'moved' | 'terminated' }>;
}

/** Reads channels through one egress. Throws `ChannelNotFoundError` and `UpstreamError`. */
@Injectable()
export class ChannelReader {
  constructor(private readonly innertube: InnertubeClient) {}

  /** The ID of a channel that is named by its URL. */
  async resolve(reference: NamedReference, scope: RequestScope, redirectsLeft = REDIRECTS_MAX): Promise<string> {
    const url = addressOf(reference);
    const response = await this.requestUrl(url, scope);
    const resolved = isJsonError(response, 404) ? null : valueOf(response, url);
    if (resolved === null) throw new ChannelNotFoundError(new Error(`${url} is not the URL of a channel`));
    if (resolved.kind === 'id') return resolved.id;
    if (redirectsLeft === 0) throw tooManyRedirects(url);
    return this.resolve(resolved, scope, redirectsLeft - 1);
  }

  private idOf(reference: ChannelReference, scope: RequestScope): Promise<string> | string {
    return reference.kind === 'id' ? reference.id : this.resolve(reference, scope);
  }

  async read(requestedId: string, scope: RequestScope): Promise<Channel> {
    const { channelId, page } = await this.page(requestedId, scope);
    if (page.kind === 'channel') return page.channel;
    if (page.kind === 'topic') return { id: channelId, name: page.name, handle: null };
    // The age gate hides the handle and sometimes the name, but the list of uploads links to the channel with each video. It
    // is requested without a field mask, because none selects these links.
    const payload = { browseId: `VLUU${channelId.slice(2)}` };
    const query = { kind: 'owner', client: 'WEB', path: 'browse', payload, fields: null } as const;
    const optional = { ...scope, attempt: new Attempt(channelId, 'optional') };
    const response = await this.innertube.query(query, (list) => findHandle(list, channelId), optional);
    const handle = response.kind === 'parsed' ? response.value : null;
    return { id: channelId, name: page.name ?? handle ?? '', handle };
  }

  /** The ID that a channel has now; another one when it has moved. */
  async currentId(channelId: string, scope: RequestScope): Promise<string> {
    return (await this.page(channelId, scope)).channelId;
  }

  private async page(channelId: string, scope: RequestScope, redirectsLeft = REDIRECTS_MAX): Promise<FoundPage> {
    const payload = { browseId: channelId };
    const query = { kind: 'channel', client: 'WEB', path: 'browse', payload, fields: CHANNEL_FIELDS } as const;
    const response = await this.innertube.queryWhole(query, readChannelPage, scope);
    const page: ChannelPage = isJsonError(response, 400, 404) ? { kind: 'terminated' } : valueOf(response, channelId);
    switch (page.kind) {
      case 'channel':
      case 'age-gated':
      case 'topic':
        return { channelId, page };
      case 'moved':
        if (redirectsLeft === 0) throw tooManyRedirects(channelId);
        return this.page(await this.idOf(page.to, scope), scope, redirectsLeft - 1);
      case 'terminated':
        throw new ChannelNotFoundError(new Error(`${channelId} is terminated or does not exist`));
    }
  }

  /** Requests the channel of a URL: null for a URL that is not a channel's, HTTP 404 for an unknown one. */
  private requestUrl(url: string, scope: RequestScope): Promise<ParsedResponse<ChannelReference | null>> {
    const path = 'navigation/resolve_url';
    const query = { kind: 'resolve', client: 'WEB', path, payload: { url }, fields: null } as const;
    return this.innertube.queryWhole(query, readResolvedUrl, scope);
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
