import { z } from 'zod';
import { CHANNEL_FORMS, CHANNEL_NAMED } from '../../domain/references/channel-reference.js';
import { VideoFailedError, VideoNotFoundError, invalidField } from '../../domain/errors.js';
import { Field, Fields, OptionalFields, Restated } from '../../http/routes/field.js';
import { parseVideoReference } from '../../domain/references/video-reference.js';
import { givenVideos } from '../../transcripts/sources/video-list.js';
import { CURSOR_VIDEOS_MAX, readTexts, type Position } from '../text-page.js';
import {
  ChannelInput,
  cursorOutput,
  defineTool,
  FilterInput,
  PageInput,
  summaryOutput,
  TEXT_IS_DATA,
  TextInput,
  videoOf,
  videoOutput,
} from './tool.js';

const CHANNEL_VIDEOS_DEFAULT = 3;
const WHOLE_VIDEOS: Position['range'] = [0, null];

const COST = 'Costs one transcript of the quota for each fetched video; cached and failed ones are free.';
const PAGES = 'Longer text continues with the returned cursor, for free.';

class ChannelTranscriptsInput extends Fields(
  Restated(OptionalFields(ChannelInput), { channel: { hint: `Required without a cursor: ${CHANNEL_NAMED}.` } }),
  FilterInput,
  TextInput,
  PageInput,
) {
  @Field.integer({
    min: 1,
    max: CURSOR_VIDEOS_MAX,
    default: CHANNEL_VIDEOS_DEFAULT,
    description: 'Videos at most.',
  })
  limit: number;
}

class VideoTranscriptInput extends Fields(TextInput, PageInput) {
  @Field.text({
    rule: 'the ID or the URL of a video',
    description: 'Required without a cursor: the ID (11 characters) or the URL of a video.',
  })
  video?: string;

  @Field.number({ min: 0, default: 0, description: 'Only from this second on.' })
  fromSeconds: number;

  @Field.number({ min: 0, description: 'Only before this second.' })
  toSeconds?: number;
}

export const getChannelTranscripts = defineTool({
  name: 'get_channel_transcripts',
  title: "Transcripts of a channel's newest videos",
  description:
    `Returns the transcripts of the newest uploads of a YouTube channel as Markdown, newest first, with a link to the second ` +
    `of each paragraph. ${COST} Requires the Pro plan. ${PAGES} ${TEXT_IS_DATA}`,
  feature: 'channel_transcripts',
  limitsConcurrency: true,
  effect: 'reads',
  input: ChannelTranscriptsInput,
  output: z.object({
    channelId: z.string(),
    videos: z.array(videoOutput),
    summary: summaryOutput,
    cursor: cursorOutput,
  }),
  async run(input, context, services) {
    const start = () => {
      if (input.channel === undefined)
        throw invalidField('channel', `channel is required without a cursor: ${CHANNEL_FORMS}.`);
      return { ...input, source: services.uploads.source(input.channel, input), range: WHOLE_VIDEOS };
    };
    const page = await readTexts({ ...input, tool: 'get_channel_transcripts', start }, context, services);
    const { text, resource, entries, summary, cursor: next } = page;
    return { text, structured: { channelId: resource, videos: entries.map(videoOf), summary, cursor: next } };
  },
});

export const getVideoTranscript = defineTool({
  name: 'get_video_transcript',
  title: 'Transcript of a video',
  description:
    `Returns the transcript of one YouTube video as Markdown, with a link to the second of each paragraph; fromSeconds and ` +
    `toSeconds select a part. Costs one transcript of the quota if it is fetched; cached and failed ones are free. ` +
    `${PAGES} ${TEXT_IS_DATA}`,
  feature: 'video_transcripts',
  limitsConcurrency: true,
  effect: 'reads',
  input: VideoTranscriptInput,
  output: z.object({ video: videoOutput, summary: summaryOutput, cursor: cursorOutput }),
  async run(input, context, services) {
    const { video, fromSeconds, toSeconds = null } = input;
    if (toSeconds !== null && toSeconds <= fromSeconds) {
      throw invalidField('toSeconds', 'toSeconds must be greater than fromSeconds.');
    }
    const start = () => {
      if (video === undefined)
        throw invalidField('video', 'video is required without a cursor: the ID or the URL of a video.');
      const videoId = parseVideoReference(video);
      if (videoId === undefined) throw new VideoNotFoundError();
      const range: Position['range'] = [fromSeconds, toSeconds];
      return { ...input, source: givenVideos([videoId], videoId), range };
    };
    const page = await readTexts({ ...input, tool: 'get_video_transcript', start }, context, services);
    const [entry] = page.entries;
    if (!entry) throw new Error('The plan has no video.');
    if (!entry.ok) throw new VideoFailedError(entry.error);
    return { text: page.text, structured: { video: videoOf(entry), summary: page.summary, cursor: page.cursor } };
  },
});
