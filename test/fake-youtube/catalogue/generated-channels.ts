import { LRUCache } from 'lru-cache';
import { type Channel, channelOf, hoursBefore, type Video } from './model.js';
import { seedOf } from './random.js';
import { noise, talk } from './speech.js';
import { generated } from './track.js';

const HANDLE =
  /^@(?:(bench|noise|mixed)-([1-9][0-9]{0,3})|(archive)-([1-9][0-9]{0,3}|1[0-9]{4}|20000))x([1-9][0-9]{0,4})$/i;
const CHANNEL_ID = /^(?=.{24}$)UC(?:(bench|noise|mixed)-([0-9]{4})|(archive)-([01][0-9]{4}|20000))x([0-9]{5})-+$/;
const VIDEO_ID = /^(bn|nz|mx|ar)([A-Za-z0-9_-]{3})([A-Za-z0-9_-]{3})([A-Za-z0-9_-]{3})$/;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const CONTENTS = ['bench', 'noise', 'mixed', 'archive'] as const;
type Content = (typeof CONTENTS)[number];
const PREFIXES: Readonly<Record<Content, string>> = { bench: 'bn', noise: 'nz', mixed: 'mx', archive: 'ar' };

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

/** 20,000 uploads are those of 14 years. */
const HOURS_BETWEEN_OF_ARCHIVE = 6;

/** The uploads of the latest channels: each page of a long list needs them all. */
const held = new LRUCache<string, readonly Video[]>({ max: 4 });

/** What a generated channel contains, how many videos it has, and how many cues each of them. */
interface Size {
  content: Content;
  videos: number;
  cues: number;
}

/**
 * `@bench-100x1500` is a channel of 100 videos of 1,500 generated cues; every such handle exists. The cues of
 * `@noise-100x1500` are long and random, so that they hardly compress. Of `@mixed-100x40`, three in ten have no text
 * or are refused to single clients. `@archive-20000x40` is a channel of years, with up to 20,000 uploads.
 */
export function benchChannelByHandle(handle: string): Channel | undefined {
  return matched(HANDLE.exec(handle));
}

export function benchChannelById(id: string): Channel | undefined {
  return matched(CHANNEL_ID.exec(id));
}

/** The video ID encodes the channel and the position of the video in it. */
export function benchVideo(id: string): { channel: Channel; video: Video } | undefined {
  const [, prefix, ...numbers] = VIDEO_ID.exec(id) ?? [];
  const [videos, cues, index] = numbers.map(fromDigits);
  if (!videos || !cues || index === undefined || index >= videos) return undefined;
  const content = CONTENTS.find((each) => PREFIXES[each] === prefix) ?? 'bench';
  const channel = benchChannelByHandle(`@${content}-${videos}x${cues}`);
  return channel && { channel, video: videoOf({ content, videos, cues }, index) };
}

function matched(match: RegExpExecArray | null): Channel | undefined {
  if (!match) return undefined;
  const [, plain, plainVideos, archive, archiveVideos, cues] = match;
  const name = CONTENTS.find((each) => each === (plain ?? archive)?.toLowerCase()) ?? 'bench';
  const size = { content: name, videos: Number(plainVideos ?? archiveVideos), cues: Number(cues) };
  if (size.videos === 0 || size.cues === 0) return undefined;
  return channelOf('bench', {
    id: idOf(size),
    name: `Bench ${size.videos} × ${size.cues}`,
    handle: `@${name}-${size.videos}x${size.cues}`,
    uploads: () => uploadsOf(size),
  });
}

function idOf({ content, videos, cues }: Size): string {
  const digitCount = content === 'archive' ? 5 : 4;
  const name = `${content}-${String(videos).padStart(digitCount, '0')}x${String(cues).padStart(5, '0')}`;
  return `UC${name.padEnd(22, '-')}`;
}

function uploadsOf(size: Size): readonly Video[] {
  const id = idOf(size);
  const uploads = held.get(id) ?? Array.from({ length: size.videos }, (_, index) => videoOf(size, index));
  held.set(id, uploads);
  return uploads;
}

function videoOf({ content, videos, cues }: Size, index: number): Video {
  const id = `${PREFIXES[content]}${digits(videos)}${digits(cues)}${digits(index)}`;
  return {
    id,
    title: `Generated talk ${videos - index} of ${videos}`,
    state: 'ok',
    durationSeconds: cues * 3,
    viewCount: 1_000 + index,
    publishedAt: hoursBefore((content === 'archive' ? HOURS_BETWEEN_OF_ARCHIVE : 24) * (index + 1)),
    tracks: [generated('en', () => (content === 'noise' ? noise : talk)(seedOf(id), cues))],
    ...(content === 'mixed' && MIXED[index % 20]),
    ...(content === 'archive' && ARCHIVE[index % 50]),
  };
}

function digits(number: number): string {
  return [number >> 12, number >> 6, number].map((part) => DIGITS[part & 63]).join('');
}

function fromDigits(text: string): number {
  return [...text].reduce((sum, digit) => sum * 64 + DIGITS.indexOf(digit), 0);
}
