import { noResponseError } from './errors.js';
import { defined, itemsOf, RETRIES_WHILE_FOLLOWING, type CallOptions, type Http } from './http.js';
import type { components } from './schema.js';
import type { Labels, ListedOptions } from './jobs.js';
import { selectionOf, type ListOptions } from './video-options.js';

type Schemas = components['schemas'];
export type Subscription = Schemas['Subscription'];
type VideoTranscript = Schemas['VideoTranscript'];

const CHECK_MINUTES_DEFAULT = 60;
const RESULTS_PER_PAGE = 100;
/** A check is followed by the fetching of what it found. */
const AFTER_CHECK_SECONDS = 5;
/** Pending uploads are being fetched, or are tried again between the checks. */
const PENDING_SECONDS_MAX = 60;
/** The next check can be brought forward, and clocks differ. */
const PAUSE_SECONDS_MAX = 300;
/** The feed does not state when a channel is checked. */
const FEED_PAUSE_SECONDS = 60;

export interface SubscriptionOptions extends Omit<ListOptions, 'limit'> {
  /** The minutes between two checks; 60 by default. */
  checkMinutes?: number;
  /** What is delivered first: nothing (`now`, the default), a number of the newest uploads, or those above the ID of a video. */
  start?: number | string;
  /** Your own pairs, by which lists and the feed filter. */
  labels?: Labels;
  /** The same key and options give the same subscription; a new key by default. */
  idempotencyKey?: string;
}

export interface FollowOptions extends CallOptions {
  /** The `cursor` of the last entry that was handled; by default the oldest stored entry comes first. */
  after?: string;
}

/** Only what has this label (`user:42`), or follows this channel. */
export interface FilterOptions extends ListedOptions {
  channel?: string;
}

export interface FeedOptions extends FollowOptions, FilterOptions {}

/** An entry of a subscription. Store its `cursor` with what is made of it: `follow` goes on after it. */
export type FollowedVideo = VideoTranscript & { cursor: string };

/** An entry of the feed, which states whose it is. Store its `cursor` with what is made of it: `feed` goes on after it. */
export type FeedVideo = FollowedVideo & FeedFacts;

type FeedFacts = Pick<Schemas['FeedVideoTranscript'], 'subscriptionId' | 'channel' | 'labels'>;

/** A part of the entries of a subscription or of the feed. */
export interface Page<Entry = FollowedVideo> {
  entries: Entry[];
  next: string;
  /** Until there can be something new. */
  pauseSeconds: number;
}

/** A line of a response; later versions may add types. */
export type FeedLine<Facts = object> =
  | ({ type: 'result'; cursor: string; result: VideoTranscript } & Facts)
  | { type: 'summary'; next: string; subscription?: Subscription };

export type FeedLineOfAll = FeedLine<FeedFacts>;

/** Subscriptions to channels and playlists. Every method throws ChannelTranscriptsError. */
export class Subscriptions {
  constructor(private readonly http: Http) {}

  /**
   * Follows a channel or a playlist: each new upload gets an entry, exactly once, when it has its transcript or fails for good.
   *
   * @param source a text is a channel
   */
  create(
    source: string | { channel: string } | { playlist: string },
    options: SubscriptionOptions = {},
  ): Promise<Subscription> {
    const { checkMinutes = CHECK_MINUTES_DEFAULT, start = 'now', labels, idempotencyKey } = options;
    const followed = typeof source === 'string' ? { channel: source } : source;
    const body = { ...followed, checkMinutes, start, ...defined({ labels }), ...selectionOf(options) };
    const header = { 'Idempotency-Key': idempotencyKey ?? crypto.randomUUID() };
    return this.http.call('createSubscription', { body, header }, options);
  }

  /** Yields the organization's subscriptions, newest first. */
  list({ label, channel, ...options }: FilterOptions = {}): AsyncGenerator<Subscription, void, undefined> {
    return itemsOf<Subscription, string>(async (after) => {
      const page = await this.http.call('listSubscriptions', { query: defined({ after, label, channel }) }, options);
      return [page.subscriptions, page.next];
    });
  }

  get(id: string, options?: CallOptions): Promise<Subscription> {
    return this.http.call('getSubscription', { path: { id } }, options);
  }

  /** Changes the time between checks, the labels or the texts, pauses a subscription, or lets it go on. */
  change(id: string, change: Schemas['SubscriptionChangeBody'], options?: CallOptions): Promise<Subscription> {
    return this.http.call('changeSubscription', { path: { id }, body: change }, options);
  }

  delete(id: string, options?: CallOptions): Promise<void> {
    return this.http.call('deleteSubscription', { path: { id } }, options);
  }

  /** Checks the channel now, and tries the pending uploads again. */
  check(id: string, options?: CallOptions): Promise<Subscription> {
    return this.http.call('checkSubscription', { path: { id }, body: {} }, options);
  }

  /**
   * Yields the entries of a subscription as they become final, each once, without an end: an aborted `signal` rejects with its
   * reason. Between two reads it waits for the next check, at most five minutes.
   */
  follow(id: string, { after, ...options }: FollowOptions = {}): AsyncGenerator<FollowedVideo, never, undefined> {
    const call = { retries: RETRIES_WHILE_FOLLOWING, ...options };
    const read = (cursor: string | undefined): Promise<Page> => {
      const query = { limit: RESULTS_PER_PAGE, ...defined({ after: cursor }) };
      const parse = async (response: Response) => pageOf(linesOf(await response.text()));
      return this.http.send('getSubscriptionResults', { path: { id }, query }, call, parse, 'application/x-ndjson');
    };
    return followPages(read, after, (seconds) => this.http.pause(seconds, options.signal));
  }

  /**
   * Yields the entries of all subscriptions as they become final, each once, without an end, as `follow` does for one. Between two
   * reads without entries it waits a minute.
   */
  feed({ after, label, channel, ...options }: FeedOptions = {}): AsyncGenerator<FeedVideo, never, undefined> {
    const call = { retries: RETRIES_WHILE_FOLLOWING, ...options };
    const read = (cursor: string | undefined): Promise<Page<FeedVideo>> => {
      const query = { limit: RESULTS_PER_PAGE, ...defined({ after: cursor, label, channel }) };
      const parse = async (response: Response) => pageOf<FeedFacts>(linesOf(await response.text()));
      return this.http.send('getFeed', { query }, call, parse, 'application/x-ndjson');
    };
    return followPages(read, after, (seconds) => this.http.pause(seconds, options.signal));
  }
}

const INCOMPLETE = 'The response ended before its summary.';

function linesOf<Line>(text: string): Line[] {
  if (!text.endsWith('\n')) throw noResponseError(INCOMPLETE);
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as Line);
}

/** The page of the lines of a response. @throws ChannelTranscriptsError `no_response` when the last one is missing */
export function pageOf<Facts = object>(lines: readonly FeedLine<Facts>[]): Page<FollowedVideo & Facts> {
  const end = lines.at(-1);
  if (end?.type !== 'summary') throw noResponseError(INCOMPLETE);
  const entries = lines.flatMap((line) => {
    if (line.type !== 'result') return [];
    const facts = Object.entries(line).filter(([name]) => name !== 'type' && name !== 'result');
    return [{ ...line.result, ...Object.fromEntries(facts) } as FollowedVideo & Facts];
  });
  const seconds = end.subscription ? pauseSeconds(end.subscription, Date.now()) : FEED_PAUSE_SECONDS;
  return { entries, next: end.next, pauseSeconds: seconds };
}

/** Yields what `read` returns, again and again. A page is read completely before its first entry, so that no entry is repeated. */
export async function* followPages<Entry>(
  read: (after: string | undefined) => Promise<Page<Entry>>,
  after: string | undefined,
  pause: (seconds: number) => Promise<void>,
): AsyncGenerator<Entry, never, undefined> {
  for (let cursor = after; ;) {
    const { entries, next, pauseSeconds: seconds } = await read(cursor);
    yield* entries;
    cursor = next;
    // Unlike a page of JSON, lines are never empty before the end, also with a filter.
    if (entries.length === 0) await pause(seconds);
  }
}

/** The seconds until there can be something new. */
export function pauseSeconds({ nextCheckAt, summary }: Subscription, nowMs: number): number {
  const secondsMax = summary.pending > 0 ? PENDING_SECONDS_MAX : PAUSE_SECONDS_MAX;
  if (nextCheckAt === null) return secondsMax;
  const untilCheck = Math.max(0, (Date.parse(nextCheckAt) - nowMs) / 1000);
  return Math.min(secondsMax, Math.ceil(untilCheck) + AFTER_CHECK_SECONDS);
}
