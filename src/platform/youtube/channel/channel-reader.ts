import { Injectable } from '@nestjs/common';
import type { YoutubeClient } from '../../../config/environment.js';
import type { ChannelReference } from '../../../domain/references/channel-reference.js';
import { ChannelNotFoundError, UpstreamError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import { YOUTUBE_ORIGIN } from '../egress/http-transport.js';
import { Attempt } from '../egress/attempt.js';
import type { Controls } from '../egress/experiment.js';
import type { BudgetKind } from '../egress/line.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { type FailedResponse, isJsonError, labelOf, UNREACHED } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { CHANNEL_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient, type ParsedResponse, type Unparsable } from '../innertube/innertube-client.js';
import { type ChannelPage, findHandle, readChannelPage, readResolvedUrl } from './channel-page.js';

type NamedReference = Exclude<ChannelReference, { kind: 'id' }>;

const REDIRECTS_MAX = 3;

/** The page of a channel that exists, and the ID that it was found under. */
interface FoundPage {
  channelId: string;
  page: Exclude<ChannelPage, { kind: 'moved' | 'terminated' }>;
}

/** Reads channels through one egress. Throws `ChannelNotFoundError` and `UpstreamError` (with a `ListReadError` as its cause). */
@Injectable()
export class ChannelReader {
  constructor(private readonly innertube: InnertubeClient) {}

  /** The ID of a channel. A URL that is not a channel's is answered with none, an unknown one with 404. */
  async resolve(reference: ChannelReference, scope: RequestScope, redirectsLeft = REDIRECTS_MAX): Promise<string> {
    if (reference.kind === 'id') return reference.id;
    const url = addressOf(reference);
    if (redirectsLeft < 0) throw tooManyRedirects(url);
    const path = 'navigation/resolve_url';
    const query = { kind: 'resolve', client: 'WEB', path, payload: { url }, fields: null } as const;
    const response = await this.innertube.queryWhole(query, readResolvedUrl, scope);
    const resolved = isJsonError(response, 404) ? null : valueOf(response, url);
    if (resolved === null) throw new ChannelNotFoundError(new Error(`${url} is not the URL of a channel`));
    return this.resolve(resolved, scope, redirectsLeft - 1);
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
        return this.page(await this.resolve(page.to, scope), scope, redirectsLeft - 1);
      case 'terminated':
        throw new ChannelNotFoundError(new Error(`${channelId} is terminated or does not exist`));
    }
  }
}

function valueOf<T>(response: ParsedResponse<T>, subject: string): T {
  if (response.kind === 'parsed') return response.value;
  if (response.kind === 'unparsable') report('warn', 'youtube_unreadable', { subject, expected: response.expected });
  throw listError(response, subject);
}

function tooManyRedirects(subject: string): UpstreamError {
  return listError({ kind: 'unparsable', expected: `at most ${REDIRECTS_MAX} redirects` }, subject);
}

const PATHS = { handle: '@', custom: 'c/', user: 'user/', vanity: '' } as const;

/** The channel's URL in the platform's form; names are percent-encoded. */
export function addressOf(reference: NamedReference): string {
  const name = reference.kind === 'handle' ? reference.handle : reference.name;
  return `${YOUTUBE_ORIGIN}/${PATHS[reference.kind]}${encodeURIComponent(name)}`;
}

/** The reason why a channel or list could not be read, for the log. */
export class ListReadError extends Error {
  constructor(
    subject: string,
    readonly response: FailedResponse | Unparsable,
  ) {
    const reason = 'expected' in response ? `expected ${response.expected}` : labelOf(response);
    super(`${subject}: ${reason}`, response.kind === 'network' ? { cause: response.cause } : undefined);
    this.name = 'ListReadError';
  }
}

/** The public error for a channel or list that could not be read. */
export function listError(response: FailedResponse | Unparsable, subject: string): UpstreamError {
  const cause = new ListReadError(subject, response);
  if (response.kind === 'blocked')
    return new UpstreamError('upstream_blocked', cause, response.retryAfterSeconds ?? undefined);
  if (response.kind === 'busy') return new UpstreamError('upstream_busy', cause, response.retryAfterSeconds);
  if (response.kind === 'timeout') return new UpstreamError('upstream_timeout', cause);
  const message = response.kind === 'network' ? UNREACHED : undefined;
  return new UpstreamError('upstream_failure', cause, undefined, message);
}

/** Channels that are unlikely to end: that of the platform's first video (jawed, 2005), and YouTube's own. */
const CONTROL_CHANNELS = ['UC4QobU6STFB0P71PMvOGN5A', 'UCBR8-60-B28hp2BmDPdntcQ'] as const;

/** The channels that are known to be served, as controls for lists, which WEB alone reads. */
@Injectable()
export class ControlChannels implements Controls {
  constructor(private readonly innertube: InnertubeClient) {}

  clients(): readonly YoutubeClient[] {
    return ['WEB'];
  }

  ids(): readonly string[] {
    return CONTROL_CHANNELS;
  }

  async ask(channelId: string, client: YoutubeClient, _kind: BudgetKind, scope: RequestScope) {
    const payload = { browseId: channelId };
    const query = { kind: 'channel', client, path: 'browse', payload, fields: CHANNEL_FIELDS } as const;
    const response = await this.innertube.query(query, readChannelPage, scope);
    // Any page of the platform is an answer.
    if (response.kind !== 'parsed') return response;
    scope.egress.uses.channel.served('list', client, scope.attempt.sentAtMs);
    return 'served' as const;
  }
}
