import { createHash } from 'node:crypto';
import { applyDecorators, Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { FeedAccess } from '../../auth/call.guards.js';
import { Environment } from '../../config/environment.js';
import { VERSION } from '../../config/package.js';
import { FeedRateExceededError } from '../../domain/errors.js';
import { addressOf, audienceUrl } from '../../http/errors/challenge.js';
import { ApiErrors } from '../../http/errors/error-docs.js';
import { AllowsHead, AnyQuery, Public } from '../../http/routes/route.decorators.js';
import { requestContext } from '../../http/server/request-context.js';
import { FeedNotFoundError, type FoundFeedLink } from '../../organizations/feed-links.service.js';
import { inflate } from '../../transcripts/cache/transcript-text.js';
import { ResponseMemory } from '../../transcripts/delivery/response-memory.js';
import { readEntry } from '../../transcripts/formats/json.js';
import { webVtt } from '../../transcripts/formats/subtitles.js';
import { ResponseWriter } from '../../transcripts/response/response-writer.js';
import { ATOM_EXAMPLE } from '../dto/feed-link.dto.js';
import { FeedService, type NewestEntry } from '../results/feed.service.js';
import { FEED_FORMATS, htmlOf, type FeedFormat, type FeedHead, type FeedItem } from './feed-formats.js';

const FEED_FILE = /^(\w+)\.(atom|json|rss)$/;
const TRANSCRIPT_FILE = /^([\w-]{11})\.([\w-]+)\.vtt$/;

/** Documents what the addresses have in common. */
const ApiReader = (type: string, description: string, example: string): MethodDecorator =>
  applyDecorators(
    ApiOkResponse({
      description,
      headers: { ETag: { description: 'For `If-None-Match`.', schema: { type: 'string' } } },
      content: { [type]: { schema: { type: 'string' }, example } },
    }),
    ApiResponse({ status: 304, description: 'It has not changed since the `ETag` in `If-None-Match`.' }),
    ApiErrors(
      { title: 'Nothing has this address, or it was deleted', error: new FeedNotFoundError() },
      { title: 'The address was read 60 times within an hour', error: new FeedRateExceededError(1800) },
      ...(['concurrency_limited', 'at_capacity', 'internal_error', 'service_unavailable'] as const),
    ),
  );

/** The newest entries for readers of feeds, on every plan as `GET /feed`. The token in the address is all that lets them in. */
@ApiTags('subscriptions')
@Controller('feed')
@Public()
@AllowsHead()
@AnyQuery()
export class ReaderFeedController {
  constructor(
    private readonly access: FeedAccess,
    private readonly feed: FeedService,
    private readonly memory: ResponseMemory,
    private readonly writer: ResponseWriter,
    private readonly environment: Environment,
  ) {}

  @Get(':file')
  @ApiOperation({
    security: [],
    summary: 'Read a feed',
    description:
      'Returns the newest 50 entries that have a transcript, with title, link, date, channel and the text as paragraphs with links to ' +
      'the second. Needs no key and costs no quota. The end of the address chooses Atom 1.0 (`.atom`), JSON Feed 1.1 (`.json`) or ' +
      'RSS 2.0 (`.rss`), which has the addresses of the transcripts as WebVTT too (`podcast:transcript`).',
  })
  @ApiParam({
    name: 'file',
    description: 'The token of the address, and `.atom`, `.json` or `.rss`.',
    schema: { type: 'string', example: 'ctf_….atom' },
  })
  @ApiReader(
    FEED_FORMATS.atom.type,
    'The feed. JSON Feed is `application/feed+json`, RSS `application/rss+xml`.',
    ATOM_EXAMPLE,
  )
  async getReaderFeed(@Param('file') file: string, @Req() request: Request, @Res() response: Response): Promise<void> {
    const [, token = '', name] = FEED_FILE.exec(file) ?? [];
    const link = await this.access.enter(requestContext(request), token, 'feed');
    const entries = await this.newest(link);
    const base = `${addressOf(request, audienceUrl(this.environment)) ?? ''}/feed/${token}`;
    const head = headOf(link, entries, `${base}.${name}`);
    const format = FEED_FORMATS[name as keyof typeof FEED_FORMATS];
    await this.send(request, response, format.type, [head, entries], this.document(format, head, entries, base));
  }

  @Get(':token/:file')
  @ApiOperation({
    security: [],
    summary: 'Read a transcript of a feed',
    description:
      'Returns the transcript of an entry of the feed as WebVTT, for `podcast:transcript`. Needs no key and costs no quota.',
  })
  @ApiParam({
    name: 'token',
    description: 'The token of the address of the feed.',
    schema: { type: 'string', example: 'ctf_…' },
  })
  @ApiParam({
    name: 'file',
    description: 'The ID of the video, the code of the language, and `.vtt`.',
    schema: { type: 'string', example: 'hl-dinghy__.en.vtt' },
  })
  @ApiReader('text/vtt', 'The transcript.', 'WEBVTT\n\n00:00:00.240 --> 00:00:03.440\nGood morning from the slip.\n')
  async getReaderTranscript(
    @Param('token') token: string,
    @Param('file') file: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const link = await this.access.enter(requestContext(request), token, 'transcript');
    const [, videoId, language = ''] = TRANSCRIPT_FILE.exec(file) ?? [];
    for (const entry of await this.newest(link)) {
      const segments = entry.videoId === videoId ? (await this.read(entry))?.transcript.get(language) : undefined;
      if (segments) return this.send(request, response, 'text/vtt', [entry, language], [webVtt(segments)]);
    }
    throw new FeedNotFoundError();
  }

  /** @throws ServiceUnavailableError when too much memory waits for slow readers */
  private newest(link: FoundFeedLink): Promise<NewestEntry[]> {
    this.memory.refuseWhenFull(link.organization.id);
    return this.feed.newest(link.organization.id, link);
  }

  /** Undefined for an entry that was deleted meanwhile. */
  private async read(entry: NewestEntry) {
    const text = await this.feed.text(entry);
    const read = text && (await readEntry(await inflate(text)));
    return read?.ok ? read : undefined;
  }

  /** The parts of a feed, one text at a time. */
  private async *document(format: FeedFormat, head: FeedHead, entries: readonly NewestEntry[], base: string) {
    yield format.head(head);
    let count = 0;
    for (const entry of entries) {
      const read = await this.read(entry);
      if (!read) continue;
      const { videoId, metadata, transcript } = read;
      const publishedAt = new Date(metadata.publishedAt ?? Number.NaN);
      const item: FeedItem = {
        id: `${metadata.url}#${entry.subscriptionId}`,
        url: metadata.url,
        title: metadata.title ?? videoId,
        channel: (entry.channel ?? metadata.channel)?.name ?? null,
        publishedAt: Number.isNaN(publishedAt.getTime()) ? entry.decidedAt : publishedAt,
        updatedAt: entry.decidedAt,
        html: await htmlOf(videoId, transcript),
        transcripts: [...transcript.keys()].map((language) => ({
          url: `${base}/${videoId}.${encodeURIComponent(language)}.vtt`,
          language,
        })),
      };
      yield format.item(item, count);
      count += 1;
    }
    yield format.end;
  }

  /** @param version what the body is made of */
  private async send(
    request: Request,
    response: Response,
    type: string,
    version: unknown,
    chunks: AsyncIterable<string> | Iterable<string>,
  ): Promise<void> {
    const hash = createHash('sha256').update(JSON.stringify([VERSION, type, version]));
    response.setHeader('ETag', `W/"${hash.digest('base64url')}"`);
    response.setHeader('Cache-Control', 'private, max-age=300');
    if (request.fresh) response.status(304).end();
    else await this.writer.send(request, response, type, request.method === 'HEAD' ? [] : chunks);
  }
}

function headOf(
  { id, label, subscription, createdAt }: FoundFeedLink,
  entries: readonly NewestEntry[],
  url: string,
): FeedHead {
  const [newest] = entries;
  const channel = subscription === null ? null : newest?.channel;
  return {
    id: id.replace(/^fln_(.{8})(.{4})(.{4})(.{4})/, 'urn:uuid:$1-$2-$3-$4-'),
    title: [channel?.name ?? 'Followed channels', ...(label === null ? [] : [label])].join(' · '),
    url,
    homeUrl: `https://www.youtube.com/${channel ? `channel/${channel.id}` : ''}`,
    updatedAt: newest?.decidedAt ?? createdAt,
  };
}
