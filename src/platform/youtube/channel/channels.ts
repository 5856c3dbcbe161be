import { Injectable } from '@nestjs/common';
import { Environment } from '../../../config/environment.js';
import type { ChannelReference } from '../../../domain/channel-reference.js';
import { ChannelNotFoundError, PlaylistNotFoundError, UpstreamError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import {
  ContinuationRejectedError,
  type PlaylistVideos,
  type ReadingContext,
  type UploadsList,
  type UploadsListPage,
} from '../../video-platform.js';
import { EgressPool } from '../egress/egress-pool.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { type Attempt, withProxyFailover } from '../egress/proxy-failover.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { report } from '../event-log.js';
import { CHANNEL_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { ChannelReadError, isJsonError, upstreamError } from './channel-errors.js';
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

/**
 * Channels, their uploads and playlists, through one egress after another until one answers. The methods have the contract
 * of those of `VideoPlatform`.
 */
@Injectable()
export class Channels {
  constructor(
    private readonly environment: Environment,
    private readonly egresses: EgressPool,
    private readonly innertube: InnertubeClient,
    private readonly playlists: PlaylistReader,
  ) {}

  resolve(reference: NamedReference, context: ReadingContext): Promise<string> {
    return this.throughEgresses(addressOf(reference), context, async (scope) => {
      let current = reference;
      for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
        const url = addressOf(current);
        const response = await this.requestUrl(url, scope);
        const resolved = isJsonError(response, 404) ? null : this.valueOf(response, url);
        if (resolved === null) throw new ChannelNotFoundError(new Error(`${url} is not the URL of a channel`));
        if (resolved.kind === 'id') return resolved.id;
        current = resolved;
      }
      throw tooManyRedirects(addressOf(reference));
    });
  }

  read(channelId: string, context: ReadingContext): Promise<Channel> {
    return this.throughEgresses(channelId, context, async (scope) => {
      const { page, ...found } = await this.page(channelId, scope);
      return page.kind === 'channel' ? page.channel : this.readAgeGated(found.channelId, page.name, scope);
    });
  }

  async listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList> {
    const { uploads, next } = await this.uploads(channelId, count, context);
    return { uploads, complete: next === null };
  }

  async listUploadsPage(
    channelId: string,
    continuation: string | undefined,
    context: ReadingContext,
  ): Promise<UploadsListPage> {
    const [, number = '1', token] = CONTINUATION.exec(continuation ?? '') ?? [];
    if (continuation !== undefined && token === undefined) throw new ContinuationRejectedError();
    const page = Number(number);
    const { uploads, next } = await (token === undefined
      ? this.uploads(channelId, 1, context)
      : this.throughEgresses(channelId, context, (scope) => this.nextPage(channelId, token, scope)));
    if (next === null || page < PAGES_MAX) return { uploads, next: next === null ? null : `${page + 1}:${next}` };
    report('warn', 'youtube_uploads_cut', { channelId, pages: page });
    return { uploads, next: null };
  }

  listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos> {
    return this.throughEgresses(playlistId, context, (scope) => this.playlists.playlist(playlistId, count, scope));
  }

  /**
   * Without an uploads playlist (null) the channel has no uploads, has moved to another ID or does not exist; its page
   * distinguishes them.
   */
  private uploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsListPage> {
    return this.throughEgresses(channelId, context, async (scope) => {
      const list = await this.playlists.uploads(channelId, count, scope);
      if (list !== null) return list;
      const found = await this.page(channelId, scope);
      const moved = found.channelId === channelId ? null : await this.playlists.uploads(found.channelId, count, scope);
      return moved ?? { uploads: [], next: null };
    });
  }

  private async nextPage(channelId: string, token: string, scope: RequestScope): Promise<UploadsListPage> {
    const page = await this.playlists.nextUploads(channelId, token, scope);
    if (page === null) throw new ContinuationRejectedError();
    return page;
  }

  /**
   * The age gate hides the handle and sometimes the name; the list of uploads links to the channel with each video. It is
   * requested without a field mask, because none selects these links.
   */
  private async readAgeGated(channelId: string, name: string | null, scope: RequestScope): Promise<Channel> {
    const payload = { browseId: `VLUU${channelId.slice(2)}` };
    const call = { kind: 'owner', client: 'WEB', path: 'browse', payload, fields: null } as const;
    const response = await this.innertube.query(call, (page) => findHandle(page, channelId), scope);
    const handle = response.kind === 'parsed' ? response.value : null;
    return { id: channelId, name: name ?? handle ?? '', handle };
  }

  /** @throws ChannelNotFoundError for a channel that is terminated or does not exist */
  private async page(requestedId: string, scope: RequestScope): Promise<FoundPage> {
    let channelId = requestedId;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      const payload = { browseId: channelId };
      const call = { kind: 'channel', client: 'WEB', path: 'browse', payload, fields: CHANNEL_FIELDS } as const;
      const response = await this.innertube.query(call, readChannelPage, scope);
      if (isJsonError(response, 400, 404)) throw await this.notFound(channelId, response, scope);
      const page = this.valueOf(response, channelId);
      if (page.kind === 'terminated')
        throw new ChannelNotFoundError(new Error(`${channelId} is terminated or does not exist`));
      if (page.kind !== 'moved') return { channelId, page };
      channelId = page.channelId;
    }
    throw tooManyRedirects(requestedId);
  }

  /**
   * The error for a channel ID that is refused. 400 was recorded for an invalid ID, but a version of WEB that is no longer
   * served gets it for every request.
   */
  private async notFound(channelId: string, response: ParsedResponse<unknown>, scope: RequestScope): Promise<Error> {
    const known = isJsonError(response, 400) ? await this.requestUrl(KNOWN_URL, scope) : null;
    if (known && known.kind !== 'parsed' && !isJsonError(known, 404)) return upstreamError(known, channelId);
    return new ChannelNotFoundError(new Error(`${channelId} is refused by YouTube`));
  }

  /** Requests the channel of a URL: null for a URL that is not a channel's, HTTP 404 for an unknown one. */
  private requestUrl(url: string, scope: RequestScope): Promise<ParsedResponse<ChannelReference | null>> {
    const path = 'navigation/resolve_url';
    const call = { kind: 'resolve', client: 'WEB', path, payload: { url }, fields: null } as const;
    return this.innertube.query(call, readResolvedUrl, scope);
  }

  private valueOf<T>(response: ParsedResponse<T>, subject: string): T {
    if (response.kind === 'parsed') return response.value;
    if (response.kind === 'unparsable') report('warn', 'youtube_unreadable', { subject, expected: response.expected });
    throw upstreamError(response, subject);
  }

  private async throughEgresses<T>(
    subject: string,
    context: ReadingContext,
    read: (scope: RequestScope) => Promise<T>,
  ): Promise<T> {
    const retries = this.environment.UPSTREAM_RETRIES;
    const end = await withProxyFailover(this.egresses, 'channel', subject, context, retries, (scope) =>
      this.attempt(scope, read),
    );
    if (end === null) {
      const cause = new Error('Every egress is blocked after refusals.');
      throw new UpstreamError('upstream_blocked', cause, this.egresses.blockedForSeconds('channel') ?? undefined);
    }
    if ('error' in end) throw end.error;
    return end.value;
  }

  /** Turns an exception into a result, so that another egress can be tried first. */
  private async attempt<T>(
    scope: RequestScope,
    read: (scope: RequestScope) => Promise<T>,
  ): Promise<Attempt<{ value: T } | { error: Error }>> {
    try {
      return { result: { value: await read(scope) }, verdict: 'answered', retryAfterSeconds: null };
    } catch (error) {
      if (scope.context.signal.aborted) throw scope.context.signal.reason;
      // These state what the platform answered: another egress would get the same answer.
      for (const answer of [ChannelNotFoundError, PlaylistNotFoundError, ContinuationRejectedError])
        if (error instanceof answer) return { result: { error }, verdict: 'answered', retryAfterSeconds: null };
      if (error instanceof UpstreamError && error.cause instanceof ChannelReadError) {
        const { verdict, retryAfterSeconds } = error.cause;
        return { result: { error }, verdict, retryAfterSeconds };
      }
      report('warn', 'youtube_internal_error', { message: String(error) });
      const failure = new UpstreamError('upstream_failure', error);
      return { result: { error: failure }, verdict: 'nothing', retryAfterSeconds: null };
    }
  }
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
