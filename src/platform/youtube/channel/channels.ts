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
import { type InnertubeCall, InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { ChannelReadError, isJsonError, upstreamError } from './channel-errors.js';
import { type ChannelPage, readChannelPage, readResolvedUrl, readPlaylistOwner } from './channel-page.js';
import { PlaylistReader } from './playlist-reader.js';

/** A reference that has to be resolved to an ID. */
type NamedReference = Exclude<ChannelReference, { kind: 'id' }>;

/** Recorded for an unknown handle. 400 rejects the request itself, such as a version of WEB that is no longer served. */
const UNKNOWN_URL = [404];
/** 400 was recorded for an invalid ID, and counts while the version of WEB is served. */
const UNKNOWN_ID = [404, 400];
/** Versions age over weeks. */
const SERVED_RECENTLY_MS = 3_600_000;
/** A name that exists, so that only the request itself can be at fault. */
const KNOWN_URL = `${YOUTUBE_ORIGIN}/@youtube`;

/** How many redirects to another name or channel are followed. */
const REDIRECTS_MAX = 3;

/** Far above any channel: a list that is still not at its end repeats itself, and ends there. */
const PAGES_MAX = 5_000;

/** `<number of the page, from 1>:<the platform's token>`. */
const CONTINUATION = /^([1-9]\d{0,5}):(.+)$/s;

type FailedReading = Exclude<ParsedResponse<unknown>, { kind: 'parsed' }>;

/** A channel's page, and the ID that it was found under. */
interface FoundPage {
  channelId: string;
  page: Exclude<ChannelPage, { kind: 'moved' }>;
}

/**
 * Channels, their uploads and playlists, through one egress after another until one answers. The methods have the contract
 * of those of `VideoPlatform`.
 */
@Injectable()
export class Channels {
  /** When the platform last served the version of WEB, in milliseconds of `performance.now()`. */
  private servedAtMs = Number.NEGATIVE_INFINITY;

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
        const resolved = this.valueOf(await this.requestUrl(url, scope), url, UNKNOWN_URL);
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
      switch (page.kind) {
        case 'channel':
          return page.channel;
        case 'age-gated':
          return this.readAgeGated(found.channelId, page.name, scope);
        case 'terminated':
          throw channelNotFound(channelId);
      }
    });
  }

  listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList> {
    return this.throughEgresses(channelId, context, async (scope) => {
      const list = await this.listed(channelId, scope, (id) => this.playlists.uploads(id, count, scope));
      return list ?? { uploads: [], complete: true };
    });
  }

  async listUploadsPage(
    channelId: string,
    continuation: string | undefined,
    context: ReadingContext,
  ): Promise<UploadsListPage> {
    if (continuation === undefined) {
      const { uploads, next } = await this.throughEgresses(channelId, context, (scope) =>
        this.firstPage(channelId, scope),
      );
      return { uploads, next: next === null ? null : `2:${next}` };
    }
    const [, number, token] = CONTINUATION.exec(continuation) ?? [];
    if (token === undefined) throw new ContinuationRejectedError();
    const page = Number(number);
    const { uploads, next } = await this.throughEgresses(channelId, context, (scope) =>
      this.nextPage(channelId, token, scope),
    );
    if (next === null || page < PAGES_MAX) return { uploads, next: next === null ? null : `${page + 1}:${next}` };
    report('warn', 'youtube_uploads_cut', { channelId, pages: page });
    return { uploads, next: null };
  }

  listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos> {
    return this.throughEgresses(playlistId, context, (scope) => this.playlists.playlist(playlistId, count, scope));
  }

  private async firstPage(channelId: string, scope: RequestScope): Promise<UploadsListPage> {
    const first = await this.listed(channelId, scope, (id) => this.playlists.firstUploads(id, scope));
    return first ?? { uploads: [], next: null };
  }

  /** @throws ContinuationRejectedError when the platform refuses the token, or its playlist does not exist any more */
  private async nextPage(channelId: string, token: string, scope: RequestScope): Promise<UploadsListPage> {
    const page = await this.playlists.nextUploads(channelId, token, scope);
    if (page !== null) return page;
    // A version of WEB that is no longer served gets the same status for every request.
    const failure = await this.checkVersion(scope);
    if (failure) throw upstreamError(failure, channelId);
    throw new ContinuationRejectedError();
  }

  /**
   * Reads a list of a channel. Without an uploads playlist (null) the channel has no uploads or does not exist; its page
   * distinguishes the two.
   */
  private async listed<T>(
    channelId: string,
    scope: RequestScope,
    read: (channelId: string) => Promise<T | null>,
  ): Promise<T | null> {
    const list = await read(channelId);
    if (list !== null) return list;
    const found = await this.page(channelId, scope);
    if (found.page.kind === 'terminated') throw channelNotFound(channelId);
    return found.channelId === channelId ? null : read(found.channelId);
  }

  /**
   * The age gate hides the handle and sometimes the name; the list of uploads contains both with each video. It is requested
   * without a field mask, because none selects the owner.
   */
  private async readAgeGated(channelId: string, name: string | null, scope: RequestScope): Promise<Channel> {
    const payload = { browseId: `VLUU${channelId.slice(2)}` };
    const call: InnertubeCall = { kind: 'owner', client: 'WEB', path: 'browse', payload, fields: null };
    const response = await this.innertube.query(call, (page) => readPlaylistOwner(page, channelId), scope);
    const owner = response.kind === 'parsed' ? response.value : null;
    return { id: channelId, name: name ?? owner?.name ?? owner?.handle ?? '', handle: owner?.handle ?? null };
  }

  private async page(requestedId: string, scope: RequestScope): Promise<FoundPage> {
    let channelId = requestedId;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      const payload = { browseId: channelId };
      const call: InnertubeCall = { kind: 'channel', client: 'WEB', path: 'browse', payload, fields: CHANNEL_FIELDS };
      const response = await this.innertube.query(call, readChannelPage, scope);
      if (isJsonError(response, [400])) {
        const failure = await this.checkVersion(scope);
        if (failure) throw upstreamError(failure.kind === 'http-error' ? response : failure, channelId);
      }
      const page = this.valueOf(response, channelId, UNKNOWN_ID);
      if (page.kind !== 'moved') return { channelId, page };
      channelId = page.channelId;
    }
    throw tooManyRedirects(requestedId);
  }

  /** Requests the channel of a URL: null for a URL that is not a channel's, HTTP 404 for an unknown one. */
  private requestUrl(url: string, scope: RequestScope): Promise<ParsedResponse<ChannelReference | null>> {
    const path = 'navigation/resolve_url';
    return this.innertube.query(
      { kind: 'resolve', client: 'WEB', path, payload: { url }, fields: null },
      readResolvedUrl,
      scope,
    );
  }

  /**
   * Finds out whether 400 concerns what was requested: a version of WEB that is no longer served gets it for every request.
   *
   * @returns null when the version is served; otherwise the failure of the request that checked it
   */
  private async checkVersion(scope: RequestScope): Promise<FailedReading | null> {
    if (performance.now() - this.servedAtMs < SERVED_RECENTLY_MS) return null;
    const response = await this.requestUrl(KNOWN_URL, scope);
    if (response.kind !== 'parsed' && !isJsonError(response, UNKNOWN_URL)) return response;
    this.servedAtMs = performance.now();
    return null;
  }

  /** @param unknown the statuses of a JSON error that say that there is no such channel */
  private valueOf<T>(response: ParsedResponse<T>, subject: string, unknown: readonly number[]): T {
    if (response.kind === 'parsed') {
      this.servedAtMs = performance.now();
      return response.value;
    }
    if (isJsonError(response, unknown)) {
      throw new ChannelNotFoundError(new Error(`${subject}: HTTP ${response.status}`));
    }
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
      if (isAnswer(error)) {
        return { result: { error }, verdict: 'answered', retryAfterSeconds: null };
      }
      if (error instanceof UpstreamError && error.cause instanceof ChannelReadError) {
        const { verdict, retryAfterSeconds } = error.cause;
        return { result: { error }, verdict, retryAfterSeconds };
      }
      report('warn', 'youtube_internal_error', { message: String(error) });
      return {
        result: { error: new UpstreamError('upstream_failure', error) },
        verdict: 'nothing',
        retryAfterSeconds: null,
      };
    }
  }
}

/** Whether an error states what the platform answered: another egress would get the same answer. */
function isAnswer(error: unknown): error is Error {
  return [ChannelNotFoundError, PlaylistNotFoundError, ContinuationRejectedError].some(
    (answer) => error instanceof answer,
  );
}

function tooManyRedirects(subject: string): UpstreamError {
  return upstreamError({ kind: 'unparsable', expected: `at most ${REDIRECTS_MAX} redirects` }, subject);
}

function channelNotFound(channelId: string): ChannelNotFoundError {
  return new ChannelNotFoundError(new Error(`${channelId} is terminated or does not exist`));
}

/** The channel's URL in the platform's form; names are percent-encoded. */
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
