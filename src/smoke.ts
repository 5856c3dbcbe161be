import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Registry } from 'prom-client';
import { ConfigModule } from './config/config.module.js';
import { EnvironmentError, readEnvironment } from './config/environment.js';
import { parseChannelReference } from './domain/channel-reference.js';
import { DomainError } from './domain/errors.js';
import type { Upload, VideoOutcome } from './domain/transcript.js';
import { VideoPlatform, type ReadingContext } from './platform/video-platform.js';
import { YoutubeModule } from './platform/youtube/youtube.module.js';

const USAGE = 'Usage: npm run smoke -- @handle [number of videos, 1 to 100, default 10]';
const VIDEOS_DEFAULT = 10;

/** Why the check failed, in one line. */
class SmokeError extends Error {}

/** Reads a channel from YouTube without the service and prints how YouTube responded. Not part of the tests. */
async function smoke(words: readonly string[]): Promise<void> {
  const { reference, count } = readArguments(words);
  const environment = readEnvironment();
  const adapter = { module: YoutubeModule, imports: [ConfigModule.forRoot(environment)] };
  const app = await NestFactory.createApplicationContext(adapter, { logger: false });
  Logger.overrideLogger({ log: toStandardError, warn: toStandardError, error: toStandardError });
  const [platform, registry] = [app.get(VideoPlatform), app.get<Registry>(Registry)];
  const context: ReadingContext = {
    signal: AbortSignal.timeout(environment.REQUEST_DEADLINE_SECONDS * 1000),
    deadlineAtMs: performance.now() + environment.REQUEST_DEADLINE_SECONDS * 1000,
    fairnessKey: {},
  };
  try {
    const channelId = await platform.resolveChannel(reference, context);
    const [channel, list] = await Promise.all([
      platform.readChannel(channelId, context),
      platform.listUploads(channelId, count, context),
    ]);
    print(`channel   ${channel.name} (${channel.handle ?? 'no handle'}, ${channel.id})`);
    const uploads = list.uploads.slice(0, count);
    const lines = uploads.map(async (upload) => lineOf(upload, await platform.readVideo(upload.videoId, [], context)));
    // Awaits all, also when one rejects, because the other rejections would be unhandled.
    const results = await Promise.allSettled(lines);
    for (const line of results) print(line.status === 'fulfilled' ? line.value : lineOfError(line.reason));
    context.signal.throwIfAborted();
    if (uploads.length === 0) print('The channel has no uploads.');
  } catch (error) {
    throw context.signal.aborted ? new SmokeError('YouTube did not respond within REQUEST_DEADLINE_SECONDS.') : error;
  } finally {
    await report(registry);
    await app.close();
  }
}

function readArguments(words: readonly string[]) {
  const [text, limit = String(VIDEOS_DEFAULT), ...more] = words;
  const reference = text === undefined ? undefined : parseChannelReference(text);
  if (!reference || more.length > 0 || !/^(?:[1-9][0-9]?|100)$/.test(limit)) throw new SmokeError(USAGE);
  return { reference, count: Number(limit) };
}

function lineOf(upload: Upload, outcome: VideoOutcome): string {
  const title = (upload.title ?? '(no title)').slice(0, 60);
  const shown = `${upload.videoId}  ${(upload.kind ?? 'unknown').padEnd(8)}`;
  if (!outcome.ok) return `${shown}  ${outcome.failure.code}  ${title}`;
  const texts = [...outcome.transcript].map(([languageCode, segments]) => `${languageCode}: ${segments.length} lines`);
  return `${shown}  ok (${texts.join(', ')})  ${title}`;
}

async function report(registry: Registry): Promise<void> {
  const show = async (label: string, metric: string, kind: string): Promise<void> => {
    const { values } = (await registry.getSingleMetric(metric)?.get()) ?? { values: [] };
    const found = values.filter(({ labels }) => labels['kind'] === kind);
    const counts = found.map(
      ({ labels, value }) => `${labels['client'] ?? labels['subject']} ${labels['outcome']} × ${value}`,
    );
    print(`${label}${counts.join(', ') || 'none'}`);
  };
  await show('captions  ', 'ct_upstream_requests_total', 'captions');
  await show('player    ', 'ct_upstream_requests_total', 'player');
  await show('playlist  ', 'ct_upstream_notices_total', 'shape');
  await show('$fields   ', 'ct_upstream_notices_total', 'fields');
  await show('visitor   ', 'ct_upstream_requests_total', 'visitor');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A failure in one line, without a stack. */
function lineOfError(error: unknown): string {
  if (error instanceof EnvironmentError) return error.faults.join('; ');
  if (error instanceof DomainError && error.cause instanceof Error) return `${error.code}: ${error.cause.message}`;
  return error instanceof Error ? error.message : String(error);
}

const toStandardError = (message: unknown) => void process.stderr.write(`${JSON.stringify(message)}\n`);

try {
  await smoke(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${lineOfError(error).replaceAll('\n', ' ')}\n`);
  process.exitCode = 1;
}
