import { applyDecorators, Controller, createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { from, type Observable } from 'rxjs';
import {
  PlaylistQueryDto,
  PlaylistVideosQueryDto,
  TextFields,
  TranscriptsQueryDto,
  UploadsQueryDto,
} from '../transcripts/dto/transcripts-query.dto.js';
import { toPlaylistVideosDto, toUploadsDto, UPLOADS_RATE_LIMIT } from '../transcripts/dto/lists-response.dto.js';
import { CHANNEL_FORMS } from '../domain/references/channel-reference.js';
import { DomainError, VideoNotFoundError } from '../domain/errors.js';
import { parseVideoList, parseVideoReference } from '../domain/references/video-reference.js';
import { RequiresFeature } from '../auth/auth.decorators.js';
import { OnJobs } from '../jobs/dto/api-jobs.js';
import { ResultsQueryDto } from '../jobs/dto/jobs-request.dto.js';
import { FeedQueryDto } from '../jobs/dto/subscriptions-request.dto.js';
import { FeedService } from '../jobs/results/feed.service.js';
import { ResultsResponse, type ReadResults } from '../jobs/results/results-response.js';
import { SubscriptionsService } from '../jobs/subscriptions.service.js';
import { LibrarySearchQueryDto } from '../library/dto/library-request.dto.js';
import { LibraryService } from '../library/library.service.js';
import { VideosBodyDto } from '../videos/dto/videos-request.dto.js';
import { requestContextOf } from '../http/server/request-context.js';
import { Reads } from '../http/routes/route.decorators.js';
import { forDocuments, serializeDocuments } from '../transcripts/formats/documents.js';
import { entryJson, serializeNdjson, type Chunk } from '../transcripts/formats/json.js';
import { inflate } from '../transcripts/cache/transcript-text.js';
import { onlyEntry } from '../transcripts/response/transcripts-response.js';
import { ChannelUploads } from '../transcripts/sources/channel-uploads.js';
import { givenVideos } from '../transcripts/sources/video-list.js';
import { PlaylistSource } from '../transcripts/sources/playlist-source.js';
import type { TranscriptsRequest } from '../transcripts/call-plan.js';
import { TranscriptsService } from '../transcripts/transcripts.service.js';
import { readIdMessage, readMessage, type MessageContext } from './open-messages.js';

/** Handles the messages of a pattern, which over NATS is the subject, behind the guard of the operation over HTTP. */
const OnMessage = (pattern: string, ...guards: MethodDecorator[]): MethodDecorator =>
  applyDecorators(MessagePattern(pattern), Reads(), ...guards);

const Context = createParamDecorator((_: unknown, execution: ExecutionContext) => requestContextOf(execution));

const PLAYLIST_FORMS = 'the ID or the URL of a playlist';

type Events = Promise<Observable<unknown>>;

/** The HTTP operations for transcripts, uploads and the results of subscriptions as messages; the responses are streams of events. */
@Controller()
export class MessagesController {
  constructor(
    private readonly uploads: ChannelUploads,
    private readonly playlists: PlaylistSource,
    private readonly transcripts: TranscriptsService,
    private readonly subscriptions: SubscriptionsService,
    private readonly feed: FeedService,
    private readonly results: ResultsResponse,
    private readonly library: LibraryService,
  ) {}

  @OnMessage('channels.transcripts', RequiresFeature('channel_transcripts'))
  async channel(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const { id, query } = readIdMessage(message, TranscriptsQueryDto, CHANNEL_FORMS);
    return this.stream(context, { source: this.uploads.source(id, query), ...query });
  }

  @OnMessage('channels.uploads', RequiresFeature('channel_uploads', { countedAs: UPLOADS_RATE_LIMIT }))
  async channelUploads(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const { id, query } = readIdMessage(message, UploadsQueryDto, CHANNEL_FORMS);
    const listed = await this.uploads.listWithinDeadline(id, query, context);
    context.log['channelId'] = listed.channel.id;
    return from(eventsFor(context, [[JSON.stringify(toUploadsDto(listed))]]));
  }

  @OnMessage('playlists.transcripts', RequiresFeature('bulk_transcripts'))
  async playlist(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const { id, query } = readIdMessage(message, PlaylistQueryDto, PLAYLIST_FORMS);
    return this.stream(context, { source: this.playlists.source(id, query), ...query });
  }

  @OnMessage('playlists.videos', RequiresFeature('channel_uploads', { countedAs: UPLOADS_RATE_LIMIT }))
  async playlistVideos(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const { id, query } = readIdMessage(message, PlaylistVideosQueryDto, PLAYLIST_FORMS);
    const listed = await this.playlists.listWithinDeadline(id, query, context);
    context.log['playlistId'] = listed.playlist.id;
    return from(eventsFor(context, [[JSON.stringify(toPlaylistVideosDto(listed))]]));
  }

  @OnMessage('videos.transcripts', RequiresFeature('bulk_transcripts'))
  async videos(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const { videos, ...texts } = readMessage(message, VideosBodyDto, 'json');
    return this.stream(context, { source: givenVideos(parseVideoList(videos)), ...texts });
  }

  @OnMessage('videos.transcript', RequiresFeature('video_transcripts'))
  async video(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const { id, query } = readIdMessage(message, TextFields, 'the ID or the URL of a video');
    const videoId = parseVideoReference(id);
    if (videoId === undefined) throw new VideoNotFoundError();
    const delivery = await this.transcripts.start({ source: givenVideos([videoId], videoId), ...query }, context);
    return from(eventsFor(context, [entryJson('', await onlyEntry(delivery.events('listed')), '')]));
  }

  @OnMessage('subscriptions.results', OnJobs('subscription', { limitsConcurrency: true }))
  async subscriptionResults(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const { id, query } = readIdMessage(message, ResultsQueryDto, 'the ID of a subscription');
    const { id: organizationId } = context.caller.organization;
    const read: ReadResults = (page) => this.subscriptions.results(organizationId, id, page);
    const lines = await this.results.lines('subscription', read, organizationId, query);
    context.log['subscriptionId'] = id;
    return from(eventsFor(context, lines));
  }

  @OnMessage('feed', OnJobs('subscription', { limitsConcurrency: true }))
  async organizationFeed(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const { label, channel, ...query } = readMessage(message, FeedQueryDto, 'either');
    const { id: organizationId } = context.caller.organization;
    const read: ReadResults = (page) => this.feed.read(organizationId, { ...page, label, channel });
    return from(eventsFor(context, await this.results.lines('feed', read, organizationId, query)));
  }

  @OnMessage('library.search', RequiresFeature('library'))
  async searchLibrary(@Payload() message: unknown, @Context() context: MessageContext): Events {
    const query = readMessage(message, LibrarySearchQueryDto, 'either');
    return from(eventsFor(context, [[JSON.stringify(await this.library.search(context.caller, query))]]));
  }

  private async stream(
    context: MessageContext,
    { as, ...request }: TranscriptsRequest & Pick<PlaylistQueryDto, 'as'>,
  ): Events {
    if (as !== undefined) {
      const delivery = await this.transcripts.start(forDocuments(request), context);
      return from(eventsFor(context, serializeDocuments(delivery.events('as-finished'), request)));
    }
    const delivery = await this.transcripts.start(request, context);
    return from(eventsFor(context, serializeNdjson(delivery.events('as-finished'))));
  }
}

/** An event exceeds the payload limit of the broker; the fetched transcripts stay cached. */
class EventTooLargeError extends DomainError {
  constructor(bytes: number, bytesMax: number) {
    super(
      'internal_error',
      `An event of this response has ${bytes} bytes, and the message broker accepts ${bytesMax}. Use HTTP, or raise max_payload of the broker.`,
    );
  }
}

/**
 * Parses NDJSON lines into events, no faster than the reader takes them. Ends without an error when the caller
 * disconnects.
 *
 * @throws EventTooLargeError
 */
async function* eventsFor(
  context: MessageContext,
  lines: AsyncIterable<Chunk | string> | Iterable<Chunk>,
): AsyncGenerator<unknown> {
  const { replyChannel } = context;
  for await (const line of lines) {
    let text = '';
    for (const part of typeof line === 'string' ? [line] : line)
      text += typeof part === 'string' ? part : (await inflate(part)).toString();
    // Documents of an entry are several lines.
    for (const event of text.split('\n').filter((each) => each !== '')) {
      const { eventBytesMax } = replyChannel;
      const bytes = Buffer.byteLength(event);
      if (eventBytesMax !== undefined && bytes > eventBytesMax) throw new EventTooLargeError(bytes, eventBytesMax);
      if (context.isDisconnected) return;
      yield JSON.parse(event);
      await replyChannel.taken(context.responseEnd);
    }
  }
}
