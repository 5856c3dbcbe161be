import { LRUCache } from 'lru-cache';
import { type Channel, channelOf, hoursBefore, type Video } from './model.js';
import { seedOf } from './random.js';
import { noise, talk } from './speech.js';
import { generated } from './track.js';

const HANDLE =
  /^@(?:(bench|noise|mixed)-([1-9][0-9]{0,3})|(archive)-([1-9][0-9]{0,3}|1[0-9]{4}|20000))x([1-9][0-9]{0,4})$/i;
const NUMBERED_HANDLE = /^@([1-9][0-9]{0,3})-videos-no-([1-9][0-9]{0,4})$/i;
const CHANNEL_ID =
  /^(?=.{24}$)UC(?:(bench|noise|mixed|videos)-([0-9]{4})|(archive)-([01][0-9]{4}|20000))x([0-9]{5})-+$/;
const VIDEO_ID = /^(bn|nz|mx|ar|vd)([A-Za-z0-9_-]{3})([A-Za-z0-9_-]{3})([A-Za-z0-9_-]{3})$/;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const CONTENTS = ['bench', 'noise', 'mixed', 'archive', 'videos'] as const;
type Content = (typeof CONTENTS)[number];
const PREFIXES: Readonly<Record<Content, string>> = {
  bench: 'bn',
  noise: 'nz',
  mixed: 'mx',
  archive: 'ar',
  videos: 'vd',
};

/** Of a video of `@25-videos-no-12`. */
const CUES_OF_NUMBERED = 20;

/** What six of every twenty videos of `@mixed-…` are instead, by their position modulo 20. */
const MIXED: Readonly<Record<number, Partial<Video>>> = {
  3: { state: 'deleted', tracks: [] },
  7: { state: 'private', tracks: [] },
  11: { state: 'members-only' },
  13: { tracks: [] },
  16: { state: 'age-gated' },
  18: { unplayableOn: ['VISIONOS', 'ANDROID_VR'] },
};

/** What fifteen of every fifty videos of `@archive-…` are besides, by their position modulo 50: ten are Shorts with a text. */
const ARCHIVE: Readonly<Record<number, Partial<Video>>> = {
  ...Object.fromEntries(
    Array.from({ length: 10 }, (_, tenth) => [tenth * 5 + 2, { short: true, durationSeconds: 45 }]),
  ),
  6: { pastLive: true },
  13: { state: 'private', tracks: [] },
  24: { tracks: [] },
  35: { state: 'deleted', tracks: [] },
  46: { state: 'members-only' },
};

/** The forms of the handles, for a reader. */
export const GENERATED_FORMS = CONTENTS.map((content) =>
  content === 'videos'
    ? '@<videos>-videos-no-<number>  generated, e.g. @25-videos-no-12'
    : `@${content}-<videos>x<cues>  generated, e.g. @${content}-100x40`,
);

/** 20,000 uploads are those of 14 years. */
const HOURS_BETWEEN_OF_ARCHIVE = 6;

/** From this age on what is for members stays so, also where a list states the age in months only. */
const MEMBERS_FIRST_HOURS = 60 * 24;

/** The uploads of the latest channels: each page of a long list needs them all. */
const held = new LRUCache<string, readonly Video[]>({ max: 4 });

/** What a generated channel contains, and how many videos it has. */
interface Size {
  content: Content;
  videos: number;
  /** The cues of each video. Of `videos` the number of the channel. */
  number: number;
}

/**
 * Every such handle exists. `@25-videos-no-12` is one of many channels of 25 videos: a test takes a number that no other uses, since
 * what the service has cached of one is not fetched again. `@bench-100x1500`, for measurements and large responses, has 100 videos of
 * 1,500 generated cues. The cues of `@noise-100x1500` are long and random, so that they hardly compress. Of `@mixed-100x40`, three in
 * ten have no text or are refused to single clients. `@archive-20000x40` is a channel of years, with up to 20,000 uploads.
 */
export function generatedChannelByHandle(handle: string): Channel | undefined {
  const [, videos, number] = NUMBERED_HANDLE.exec(handle) ?? [];
  if (videos) return channelOfSize({ content: 'videos', videos: Number(videos), number: Number(number) });
  return matched(HANDLE.exec(handle));
}

export function generatedChannelById(id: string): Channel | undefined {
  return matched(CHANNEL_ID.exec(id));
}

/** The video ID encodes the channel and the position of the video in it. */
export function generatedVideo(id: string): { channel: Channel; video: Video } | undefined {
  const [, prefix, ...numbers] = VIDEO_ID.exec(id) ?? [];
  const [videos, number, index] = numbers.map(fromDigits);
  if (!videos || !number || index === undefined || index >= videos) return undefined;
  const size = { content: CONTENTS.find((each) => PREFIXES[each] === prefix) ?? 'bench', videos, number };
  const channel = generatedChannelByHandle(handleOf(size));
  return channel && { channel, video: videoOf(size, index) };
}

function matched(match: RegExpExecArray | null): Channel | undefined {
  if (!match) return undefined;
  const [, plain, plainVideos, archive, archiveVideos, number] = match;
  const content = CONTENTS.find((each) => each === (plain ?? archive)?.toLowerCase()) ?? 'bench';
  return channelOfSize({ content, videos: Number(plainVideos ?? archiveVideos), number: Number(number) });
}

function channelOfSize(size: Size): Channel | undefined {
  const { videos, number } = size;
  if (videos === 0 || number === 0) return undefined;
  return channelOf('bench', {
    id: idOf(size),
    name: `Bench ${videos} × ${number}`,
    handle: handleOf(size),
    uploads: () => uploadsOf(size),
  });
}

function handleOf({ content, videos, number }: Size): string {
  return content === 'videos' ? `@${videos}-videos-no-${number}` : `@${content}-${videos}x${number}`;
}

function idOf({ content, videos, number }: Size): string {
  const digitCount = content === 'archive' ? 5 : 4;
  const name = `${content}-${String(videos).padStart(digitCount, '0')}x${String(number).padStart(5, '0')}`;
  return `UC${name.padEnd(22, '-')}`;
}

function uploadsOf(size: Size): readonly Video[] {
  const id = idOf(size);
  const uploads = held.get(id) ?? Array.from({ length: size.videos }, (_, index) => videoOf(size, index));
  held.set(id, uploads);
  return uploads;
}

function videoOf({ content, videos, number }: Size, index: number): Video {
  const id = `${PREFIXES[content]}${digits(videos)}${digits(number)}${digits(index)}`;
  const cues = content === 'videos' ? CUES_OF_NUMBERED : number;
  const ageHours = (content === 'archive' ? HOURS_BETWEEN_OF_ARCHIVE : 24) * (index + 1);
  const others = { mixed: MIXED[index % 20], archive: ARCHIVE[index % 50] };
  const other = content === 'mixed' || content === 'archive' ? others[content] : undefined;
  return {
    id,
    title: `Generated talk ${videos - index} of ${videos}`,
    state: 'ok',
    durationSeconds: cues * 3,
    viewCount: 1_000 + index,
    publishedAt: hoursBefore(ageHours),
    tracks: [generated('en', () => (content === 'noise' ? noise : talk)(seedOf(id), cues))],
    ...other,
    // A job waits for hours for what can open to everybody yet.
    ...(other?.state === 'members-only' && ageHours < MEMBERS_FIRST_HOURS && { state: 'age-gated' }),
  };
}

function digits(number: number): string {
  return [number >> 12, number >> 6, number].map((part) => DIGITS[part & 63]).join('');
}

function fromDigits(text: string): number {
  return [...text].reduce((sum, digit) => sum * 64 + DIGITS.indexOf(digit), 0);
}
