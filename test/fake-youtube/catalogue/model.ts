/** The InnerTube clients that the fake YouTube distinguishes; `ANDROID_REEL` is ANDROID with the reel endpoint. */
export const CLIENTS = ['WEB', 'VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'] as const;
export type Client = (typeof CLIENTS)[number];

/** A piece of a caption line; each format writes styles in its own way. */
export interface Run {
  text: string;
  italic?: boolean;
  /** `#RRGGBB`. */
  colour?: string;
}

/** One caption; a null duration is omitted, as the platform does occasionally. */
export interface Cue {
  startMs: number;
  durationMs: number | null;
  runs: readonly Run[];
}

export function textOf(cue: Cue): string {
  return cue.runs.map((run) => run.text).join('');
}

/** The clients whose caption URLs return an empty body without a PO token. */
interface TokenNeed {
  clients: readonly Client[];
  /** Whether the URL indicates it (`exp=xpe`); otherwise the empty body is the only sign. */
  announced: boolean;
}

export interface Track {
  languageCode: string;
  /** The language as the platform names it in English; "(auto-generated)" is added for a generated one. */
  languageName: string;
  generated?: boolean;
  /** Signs and foreign passages only. */
  forced?: boolean;
  /** Sent as srv3, whatever is requested. */
  alwaysSrv3?: boolean;
  tokenNeed?: TokenNeed;
  /** Listed for WEB only, as the platform leaves manual tracks with styling out for the apps. */
  webOnly?: boolean;
  /** Times in json3 are written as strings of digits. */
  timesAsStrings?: boolean;
  cues: () => readonly Cue[];
}

export type VideoState =
  | 'ok'
  | 'live'
  | 'upcoming'
  | 'processing'
  | 'members-only'
  | 'private'
  | 'deleted'
  | 'age-gated'
  | 'premium'
  | 'country-blocked';

export interface Video {
  /** 11 characters of `[A-Za-z0-9_-]`. */
  id: string;
  title: string;
  state: VideoState;
  short?: boolean;
  /** A live stream that has ended. */
  pastLive?: boolean;
  /** It ended so recently that it has no captions yet. */
  justEnded?: boolean;
  /** Why it cannot be played is written on an interstitial screen only. */
  interstitial?: boolean;
  /** Clients that receive a video that tells to update the app instead. */
  updateNoticeOn?: readonly Client[];
  /** Clients that receive UNPLAYABLE "This video is not available" while others may play it. */
  unplayableOn?: readonly Client[];
  /** Clients that receive ERROR "This video is unavailable" (`{}` from the reel) while others may play it. */
  errorOn?: readonly Client[];
  durationSeconds: number;
  viewCount: number;
  publishedAt: Date;
  /** It was published while the server runs: its age is that by the real clock. */
  isNew?: true;
  /** Empty when captions are turned off. */
  tracks: readonly Track[];
  /** By default that of its channel. */
  description?: string;
  tags?: readonly string[];
}

/** A `hub` is a channel of the platform itself: its page has a name only. */
type ChannelState = 'ok' | 'terminated' | 'age-gated' | 'hub';

export interface Channel {
  /** `UC` and 22 characters. */
  id: string;
  name: string;
  /** With the `@`. */
  handle: string | null;
  /** Names in URLs of the form `/c/name` and `/name`. */
  customNames: readonly string[];
  /** Names in URLs of the form `/user/name`. */
  userNames: readonly string[];
  description: string;
  state: ChannelState;
  /** A channel that never uploaded may have no uploads playlist at all. */
  uploadsPlaylist: 'present' | 'missing';
  /** Newest first. */
  uploads: () => readonly Video[];
}

/** The catalogue's current time: relative dates refer to it, so that every run returns the same. */
export const BASE_DATE = new Date('2026-11-01T12:00:00Z');

const HOUR_MS = 3_600_000;

export function hoursBefore(hours: number): Date {
  return new Date(BASE_DATE.getTime() - hours * HOUR_MS);
}

/** Pads a readable name to the length of a video ID. */
export function videoId(name: string): string {
  if (!/^[A-Za-z0-9_-]{1,11}$/.test(name)) throw new Error(`${name} cannot be a video ID`);
  return name.padEnd(11, '_');
}

/** Pads a readable name to the length of a channel ID. */
export function channelId(name: string): string {
  if (!/^[A-Za-z0-9_-]{1,22}$/.test(name)) throw new Error(`${name} cannot be a channel ID`);
  return `UC${name.padEnd(22, '_')}`;
}

/** A channel that exists, without what is not given. */
export function channelOf(name: string, facts: Pick<Channel, 'name' | 'handle'> & Partial<Channel>): Channel {
  return {
    id: channelId(name),
    customNames: [],
    userNames: [],
    description: '',
    state: 'ok',
    uploadsPlaylist: 'present',
    uploads: () => [],
    ...facts,
  };
}

type VideoFacts = { hours?: number; days?: number; seconds: number; views: number } & Partial<Video>;

/** A video that is this many hours or days old. */
export function film(name: string, title: string, facts: VideoFacts, tracks: readonly Track[] = []): Video {
  const { hours = 0, days = 0, seconds: durationSeconds, views: viewCount, ...rest } = facts;
  const publishedAt = hoursBefore(hours + days * 24);
  return { id: videoId(name), title, state: 'ok', durationSeconds, viewCount, publishedAt, tracks, ...rest };
}
