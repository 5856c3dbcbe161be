import { Injectable } from '@nestjs/common';
import { ChannelNotFoundError, type UpstreamError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import { ContinuationRejectedError, type UploadsList, type UploadsListPage } from '../../video-platform.js';
import { isJsonError, upstreamError } from './channel-errors.js';
import type { NamedReference } from './channel-source.js';
import type { ChannelPage } from './channel-page.js';
import { requestChannelPage, requestPlaylistOwner, requestResolvedUrl } from './channel-requests.js';
import { report } from '../event-log.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { UploadsReader } from './uploads-reader.js';

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

type FailedReading = Exclude<ParsedResponse<unknown>, { kind: 'parsed' }>;

/** A channel's page, and the ID that it was found under. */
interface FoundPage {
  channelId: string;
  page: Exclude<ChannelPage, { kind: 'moved' }>;
}

/** Reads channels through one egress. Its methods throw `ChannelNotFoundError` and `UpstreamError`. */
@Injectable()
export class ChannelReader {
  /** When the platform last served the version of WEB, in milliseconds of `performance.now()`. */
  private servedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly innertube: InnertubeClient,
    private readonly uploads: UploadsReader,
  ) {}

  async resolve(reference: NamedReference, scope: RequestScope): Promise<string> {
    let current = reference;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      const url = addressOf(current);
      const resolved = this.valueOf(await requestResolvedUrl(this.innertube, url, scope), url, UNKNOWN_URL);
      if (resolved === null) throw new ChannelNotFoundError(new Error(`${url} is not the URL of a channel`));
      if (resolved.kind === 'id') return resolved.id;
      current = resolved;
    }
    throw tooManyRedirects(addressOf(reference));
  }

  async read(channelId: string, scope: RequestScope): Promise<Channel> {
    const { page, ...found } = await this.page(channelId, scope);
    switch (page.kind) {
      case 'channel':
        return page.channel;
      case 'age-gated':
        return this.readAgeGated(found.channelId, page.name, scope);
      case 'terminated':
        throw channelNotFound(channelId);
    }
  }

  async listUploads(channelId: string, count: number, scope: RequestScope): Promise<UploadsList> {
    const list = await this.listed(channelId, scope, (id) => this.uploads.list(id, count, scope));
    return list ?? { uploads: [], complete: true };
  }

  /** @throws ContinuationRejectedError when the platform refuses the token, or its playlist does not exist any more */
  async listUploadsPage(channelId: string, token: string | undefined, scope: RequestScope): Promise<UploadsListPage> {
    if (token === undefined) {
      const first = await this.listed(channelId, scope, (id) => this.uploads.firstPage(id, scope));
      return first ?? { uploads: [], next: null };
    }
    const page = await this.uploads.nextPage(channelId, token, scope);
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

  /** The age gate hides the handle and sometimes the name; the list of uploads contains both with each video. */
  private async readAgeGated(channelId: string, name: string | null, scope: RequestScope): Promise<Channel> {
    const owner = await requestPlaylistOwner(this.innertube, channelId, scope);
    return { id: channelId, name: name ?? owner?.name ?? owner?.handle ?? '', handle: owner?.handle ?? null };
  }

  private async page(requestedId: string, scope: RequestScope): Promise<FoundPage> {
    let channelId = requestedId;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      const response = await requestChannelPage(this.innertube, channelId, scope);
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

  /**
   * Finds out whether 400 concerns what was requested: a version of WEB that is no longer served gets it for every request.
   *
   * @returns null when the version is served; otherwise the failure of the request that checked it
   */
  private async checkVersion(scope: RequestScope): Promise<FailedReading | null> {
    if (performance.now() - this.servedAtMs < SERVED_RECENTLY_MS) return null;
    const response = await requestResolvedUrl(this.innertube, KNOWN_URL, scope);
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
