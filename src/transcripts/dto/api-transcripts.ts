import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { QUOTA_HEADERS } from '../../http/routes/limit-headers.js';
import { ApiErrors } from '../../http/errors/error-docs.js';
import { contentOf, type Model, refTo } from '../../http/routes/response-docs.js';
import { entryError } from '../delivery/transcript-events.js';
import { MARKDOWN, NDJSON } from '../response/transcripts-response.js';
import type {
  EntryDto,
  PlaylistTranscriptsDto,
  TranscriptsDto,
  VideoTranscriptsDto,
} from './transcripts-response.dto.js';

const LIST_ERRORS = ['upstream_failure', 'upstream_blocked', 'upstream_busy', 'upstream_timeout'] as const;

/** The errors that an operation has because of where its list of videos comes from. */
export const SOURCE_ERRORS = {
  channel: ['channel_not_found', ...LIST_ERRORS],
  playlist: ['playlist_not_found', 'playlist_private', ...LIST_ERRORS],
  videos: ['upstream_timeout'],
} as const;

// The examples of the OpenAPI document: one transcript, and one video without captions.

export const ENTRY_EXAMPLE = {
  videoId: 'hl-dinghy__',
  ok: true,
  metadata: {
    title: 'We rebuilt a 1962 dinghy from the keel up',
    url: 'https://www.youtube.com/watch?v=hl-dinghy__',
    publishedAt: '2026-10-31T19:00:00Z',
    publishedText: '17 hours ago',
    durationSeconds: 612,
    viewCount: 1214330,
    thumbnailUrl: 'https://i.ytimg.com/vi/hl-dinghy__/hqdefault.jpg',
    kind: 'video',
    captionTracks: [
      { languageCode: 'en', name: 'English', generated: false },
      { languageCode: 'en', name: 'English (auto-generated)', generated: true },
    ],
  },
  transcript: {
    en: [
      { text: 'Good morning from the slip below the lighthouse.', start: 0.24, duration: 3.2 },
      { text: 'This is the Marigold, a dinghy built here in 1962.', start: 3.62, duration: 3.333 },
    ],
  },
  cached: false,
} satisfies EntryDto;

const FAILED_ENTRY = {
  videoId: 'hl-silent__',
  ok: false,
  metadata: {
    title: 'One hour of planing larch, no talking',
    url: 'https://www.youtube.com/watch?v=hl-silent__',
    publishedAt: null,
    publishedText: '3 weeks ago',
    durationSeconds: 3600,
    viewCount: 512044,
    thumbnailUrl: 'https://i.ytimg.com/vi/hl-silent__/hqdefault.jpg',
    kind: 'video',
    captionTracks: [],
  },
  transcript: {},
  cached: false,
  error: entryError({ code: 'transcript_unavailable' }),
} satisfies EntryDto;

const CHANNEL = { id: 'UCharbourlight__________', name: 'Harbour Light Workshop' };
const SUMMARY = { total: 2, succeeded: 1, failed: 1, cached: 0, fetched: 1 };

/** The example of a response that has no channel of its own. */
const withChannel = <T extends EntryDto>(entry: T): T => ({
  ...entry,
  metadata: { ...entry.metadata, channel: CHANNEL },
});

export const VIDEO_EXAMPLE = withChannel(ENTRY_EXAMPLE);
export const VIDEOS_EXAMPLE: VideoTranscriptsDto = {
  results: [VIDEO_EXAMPLE, withChannel(FAILED_ENTRY)],
  summary: SUMMARY,
};
export const TRANSCRIPTS_EXAMPLE: TranscriptsDto = {
  channel: { ...CHANNEL, handle: '@harbourlight' },
  results: [ENTRY_EXAMPLE, FAILED_ENTRY],
  summary: SUMMARY,
};
export const PLAYLIST_EXAMPLE: PlaylistTranscriptsDto = {
  playlist: { id: 'PLharbourlight-boats', title: 'Boats from start to launch' },
  ...VIDEOS_EXAMPLE,
};

const MARKDOWN_EXAMPLE = [
  '## We rebuilt a 1962 dinghy from the keel up\n',
  '<https://www.youtube.com/watch?v=hl-dinghy__> · 2026-10-31 · 10:12\n',
  '[0:00](https://youtu.be/hl-dinghy__?t=0) Good morning from the slip below the lighthouse.\n',
  '- [One hour of planing larch, no talking](https://youtu.be/hl-silent__): no transcript. This video has no captions. ' +
    '(`transcript_unavailable`)\n',
  '---\n',
  '2 videos: 1 with a transcript, 1 without.\n',
].join('\n');

/** What the OpenAPI document states of an operation for many videos. */
interface ListDocs<T> {
  type: Model<T>;
  example: T;
  /** The order of the JSON response. */
  order: string;
  source: keyof typeof SOURCE_ERRORS;
}

/** Documents the responses of an operation for many videos. Its type names the list before the results, if at all. */
export function ApiTranscripts<T extends VideoTranscriptsDto>({
  type,
  example,
  order,
  source,
}: ListDocs<T>): MethodDecorator {
  const { results, summary, ...header } = example;
  const [list] = Object.keys(header);
  const lines = [
    ...(list === undefined ? [] : [{ type: list, ...header }]),
    ...results.map((result) => ({ type: 'result', result })),
    { type: 'summary', summary },
  ];
  return applyDecorators(
    ApiErrors('plan_limit_exceeded', 'key_limit_exceeded', ...SOURCE_ERRORS[source]),
    ApiOkResponse({
      ...contentOf(
        { schema: refTo(type), example },
        {
          [NDJSON]: {
            schema: {
              type: 'string',
              description:
                'One JSON object per line, with a `type`: first ' +
                (list === undefined ? '' : `\`${list}\` with the field \`${list}\` (and \`listedAt\`, if any), then `) +
                'a `result` with the field `result` as each video finishes, and last `summary` with the field `summary`. The fields are those of the JSON response.',
            },
            example: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
          },
          [MARKDOWN]: {
            schema: {
              type: 'string',
              description:
                'One document: a section for each video with title, link, date and paragraphs of about a minute, each with a ' +
                'link to its second; one line for each video without a transcript, with its error code; and last the counts. ' +
                'Text is escaped, so that it is not read as markup.',
            },
            example: MARKDOWN_EXAMPLE,
          },
        },
      ),
      description:
        `One entry for each video. JSON and Markdown (\`Accept: text/markdown\`) are streamed ${order}; NDJSON ` +
        '(`Accept: application/x-ndjson`) in the order in which the videos finish.',
      headers: { ...ENTRY_HEADERS, ...(list !== undefined && LIST_AGE_HEADERS) },
    }),
  );
}

export const LIST_AGE_HEADERS = {
  Warning: {
    description: 'Only with `listedAt`: YouTube refuses the list, and the response has the one that was read last.',
    schema: { type: 'string' as const, example: '110 - "Response is Stale"' },
  },
};

export const ENTRY_HEADERS = {
  Vary: {
    description:
      '`Accept-Encoding, Accept`: the body is compressed for clients that accept gzip, and has another content type for ' +
      'clients that accept it.',
    schema: { type: 'string' as const },
  },
  ...QUOTA_HEADERS,
};
