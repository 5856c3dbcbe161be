import { ConsoleLogger, Logger, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Registry } from 'prom-client';
import { CacheModule } from '../../src/cache/cache.module.js';
import { ConfigModule } from '../../src/config/config.module.js';
import { Environment } from '../../src/config/environment.js';
import type { Segment, VideoOutcome } from '../../src/domain/transcript.js';
import type { ReadingContext, UploadsListPage, VideoPlatform } from '../../src/platform/video-platform.js';
import { YoutubeModule } from '../../src/platform/youtube/youtube.module.js';
import { YoutubePlatform } from '../../src/platform/youtube/youtube-platform.js';
import { listFrom, readCounted } from '../../src/transcripts/sources/counted-list.js';

/** The adapter in front of a server, with what it logged and counted. */
export interface Adapter {
  platform: YoutubePlatform;
  /** Its metrics. */
  registry: Registry;
  /** The structured messages of its log, in order. */
  logged: Record<string, unknown>[];
  close(): Promise<void>;
}

/** Opens the adapter with everything that it sends going to `url`. */
export async function openAdapter(url: string, choices: Partial<Environment> = {}): Promise<Adapter> {
  const logged: Record<string, unknown>[] = [];
  const keep = (message: unknown) => void logged.push(typeof message === 'object' ? { ...message } : { message });
  const logger: LoggerService = { log: keep, warn: keep, error: keep };
  const environment = Object.assign(new Environment(), { YOUTUBE_BASE_URL: url, UPSTREAM_RETRIES: 0 }, choices);
  const shared = environment.REDIS_URL === undefined ? [] : [await CacheModule.forRoot(environment)];
  const adapter = { module: YoutubeModule, imports: [ConfigModule.forRoot(environment), ...shared] };
  const app = await NestFactory.createApplicationContext(adapter, { logger: false });
  Logger.overrideLogger(logger);
  const close = async (): Promise<void> => {
    await app.close();
    Logger.overrideLogger(new ConsoleLogger());
  };
  return { platform: app.get(YoutubePlatform), registry: app.get(Registry), logged, close };
}

/** A caller with a deadline of a minute by default. */
export function context(choices: Partial<ReadingContext> = {}): ReadingContext {
  return {
    signal: new AbortController().signal,
    deadlineAtMs: performance.now() + 60_000,
    organizationId: 'an organization',
    fairnessKey: {},
    ...choices,
  };
}

/** The newest uploads of a channel, counted and described as for a call. */
export function listUploads(platform: VideoPlatform, channelId: string, count: number, reading = context()) {
  const first = async () => listFrom(await pageOfUploads(platform, channelId, undefined, reading));
  return readCounted(count, undefined, first, (after) => platform.uploads(channelId, after, reading));
}

/** A page of the uploads of a channel, the first one described, as for a job. */
export async function pageOfUploads(
  platform: VideoPlatform,
  channelId: string,
  after?: string,
  reading = context(),
): Promise<UploadsListPage> {
  if (after !== undefined) return platform.uploads(channelId, after, reading);
  const reads = platform.uploads(channelId, undefined, reading);
  const { uploads, next, incomplete, hidden, pages } = await platform.describe(channelId, reads, reading);
  return { uploads, next, incomplete, hidden, pages };
}

/** The first videos of a playlist, counted as for a call. */
export function listPlaylist(platform: VideoPlatform, id: string, count: number, reading = context()) {
  const pageAfter = (after?: string) => platform.playlist(id, after, reading);
  const first = async () => {
    const page = await pageAfter();
    return { ...listFrom(page), playlist: page.playlist };
  };
  return readCounted(count, undefined, first, pageAfter);
}

/** Every page of a channel's uploads. */
export async function allPages(
  channelId: string,
  pageOf: (channelId: string, continuation?: string) => Promise<UploadsListPage>,
): Promise<UploadsListPage[]> {
  const pages = [await pageOf(channelId)];
  for (let next = pages[0]?.next; next !== null && next !== undefined; next = pages.at(-1)?.next) {
    pages.push(await pageOf(channelId, next));
  }
  return pages;
}

/** `ok`, or the code of the failure. */
export function end(outcome: VideoOutcome): string {
  return outcome.ok ? 'ok' : outcome.failure.code;
}

/** The text of one language of a transcript. */
export function text(outcome: VideoOutcome, languageCode: string): string | undefined {
  const segments: readonly Segment[] | undefined = outcome.ok ? outcome.transcript.get(languageCode) : undefined;
  return segments?.map((segment) => segment.text).join(' ');
}
