import { type Channel, hoursBefore, type Video } from './model.js';
import { seedOf } from './random.js';
import { noise, talk } from './speech.js';
import { generated } from './track.js';

const HANDLE = /^@(bench|noise)-([1-9][0-9]{0,3})x([1-9][0-9]{0,4})$/i;
const CHANNEL_ID = /^UC(bench|noise)-([0-9]{4})x([0-9]{5})------$/;
const VIDEO_ID = /^(bn|nz)([A-Za-z0-9_-]{3})([A-Za-z0-9_-]{3})([A-Za-z0-9_-]{3})$/;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** How many videos a generated channel has, how many cues each of them, and whether those compress well. */
interface Size {
  noisy: boolean;
  videos: number;
  cues: number;
}

/**
 * `@bench-100x1500` is a channel of 100 videos of 1,500 generated cues; every such handle exists. The cues of
 * `@noise-100x1500` are long and random, so that they hardly compress.
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
  const noisy = prefix === 'nz';
  const channel = benchChannelByHandle(`@${nameOf(noisy)}-${videos}x${cues}`);
  return channel && { channel, video: videoOf({ noisy, videos, cues }, index) };
}

function channelOf(match: RegExpExecArray | null): Channel | undefined {
  if (!match) return undefined;
  const noisy = match[1]?.toLowerCase() === 'noise';
  const size = { noisy, videos: Number(match[2]), cues: Number(match[3]) };
  const name = nameOf(noisy);
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

function videoOf({ noisy, videos, cues }: Size, index: number): Video {
  const id = `${noisy ? 'nz' : 'bn'}${digits(videos)}${digits(cues)}${digits(index)}`;
  return {
    id,
    title: `Generated talk ${videos - index} of ${videos}`,
    state: 'ok',
    durationSeconds: cues * 3,
    viewCount: 1_000 + index,
    publishedAt: hoursBefore(24 * (index + 1)),
    tracks: [generated('en', () => (noisy ? noise : talk)(seedOf(id), cues))],
  };
}

function nameOf(noisy: boolean): 'bench' | 'noise' {
  return noisy ? 'noise' : 'bench';
}

function digits(number: number): string {
  return [number >> 12, number >> 6, number].map((part) => DIGITS[part & 63]).join('');
}

function fromDigits(text: string): number {
  return [...text].reduce((sum, digit) => sum * 64 + DIGITS.indexOf(digit), 0);
}
