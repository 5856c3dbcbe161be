import { type Channel, hoursBefore, type Video } from './model.js';
import { seedOf } from './random.js';
import { noise, talk } from './speech.js';
import { generated } from './track.js';

const HANDLE = /^@(bench|noise|mixed)-([1-9][0-9]{0,3})x([1-9][0-9]{0,4})$/i;
const CHANNEL_ID = /^UC(bench|noise|mixed)-([0-9]{4})x([0-9]{5})------$/;
const VIDEO_ID = /^(bn|nz|mx)([A-Za-z0-9_-]{3})([A-Za-z0-9_-]{3})([A-Za-z0-9_-]{3})$/;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const CONTENTS = ['bench', 'noise', 'mixed'] as const;
type Content = (typeof CONTENTS)[number];
const PREFIXES: Readonly<Record<Content, string>> = { bench: 'bn', noise: 'nz', mixed: 'mx' };

/** What six of every twenty videos of `@mixed-…` are instead, by their position modulo 20. */
const MIXED: Readonly<Record<number, Partial<Video>>> = {
  3: { state: 'deleted', tracks: [] },
  7: { state: 'private', tracks: [] },
  11: { state: 'members-only' },
  13: { tracks: [] },
  16: { state: 'age-gated' },
  18: { unplayableOn: ['VISIONOS', 'ANDROID_VR'] },
};

/** What a generated channel contains, how many videos it has, and how many cues each of them. */
interface Size {
  content: Content;
  videos: number;
  cues: number;
}

/**
 * `@bench-100x1500` is a channel of 100 videos of 1,500 generated cues; every such handle exists. The cues of
 * `@noise-100x1500` are long and random, so that they hardly compress. Of `@mixed-100x40`, three in ten have no text
 * or are refused to single clients.
 */
export function benchChannelByHandle(handle: string): Channel | undefined {
  return channelOf(HANDLE.exec(handle));
}

export function benchChannelById(id: string): Channel | undefined {
  return channelOf(CHANNEL_ID.exec(id));
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

function channelOf(match: RegExpExecArray | null): Channel | undefined {
  if (!match) return undefined;
  const name = CONTENTS.find((each) => each === match[1]?.toLowerCase()) ?? 'bench';
  const size = { content: name, videos: Number(match[2]), cues: Number(match[3]) };
  if (size.videos === 0 || size.cues === 0) return undefined;
  return {
    id: `UC${name}-${String(size.videos).padStart(4, '0')}x${String(size.cues).padStart(5, '0')}------`,
    name: `Bench ${size.videos} × ${size.cues}`,
    handle: `@${name}-${size.videos}x${size.cues}`,
    customNames: [],
    userNames: [],
    description: `${size.videos} generated videos of ${size.cues} cues.`,
    state: 'ok',
    uploadsPlaylist: 'present',
    uploads: () => Array.from({ length: size.videos }, (_, index) => videoOf(size, index)),
  };
}

function videoOf({ content, videos, cues }: Size, index: number): Video {
  const id = `${PREFIXES[content]}${digits(videos)}${digits(cues)}${digits(index)}`;
  return {
    id,
    title: `Generated talk ${videos - index} of ${videos}`,
    state: 'ok',
    durationSeconds: cues * 3,
    viewCount: 1_000 + index,
    publishedAt: hoursBefore(24 * (index + 1)),
    tracks: [generated('en', () => (content === 'noise' ? noise : talk)(seedOf(id), cues))],
    ...(content === 'mixed' && MIXED[index % 20]),
  };
}

function digits(number: number): string {
  return [number >> 12, number >> 6, number].map((part) => DIGITS[part & 63]).join('');
}

function fromDigits(text: string): number {
  return [...text].reduce((sum, digit) => sum * 64 + DIGITS.indexOf(digit), 0);
}
