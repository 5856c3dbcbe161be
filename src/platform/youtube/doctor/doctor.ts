import { NestFactory } from '@nestjs/core';
import { Registry } from 'prom-client';
import { ConfigModule } from '../../../config/config.module.js';
import { Environment } from '../../../config/environment.js';
import type { ChannelReference } from '../../../domain/references/channel-reference.js';
import { DomainError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import { type ReadingContext, VideoPlatform } from '../../video-platform.js';
import { EgressPool } from '../egress/egress-pool.js';
import type { ControlEnd } from '../egress/egress.js';
import { Experiment } from '../egress/experiment.js';
import { ExchangeListener } from '../egress/http-transport.js';
import { YoutubeModule } from '../youtube.module.js';

/** What the doctor found. It contains no address, key or token. */
export interface DoctorReport {
  /**
   * Whether the service would serve with this configuration: a video was answered or, of a channel without one that can have
   * captions, a control. Null when the channel does not exist, which says nothing about the address.
   */
  serves: boolean | null;
  channel: Channel | null;
  /** Those that can have captions. The outcome is `ok` or the code of the failure; lines are counted by language. */
  videos: { videoId: string; title: string | null; outcome: string; lines: Record<string, number> }[];
  /** A line for each part that was checked. */
  findings: string[];
}

/** The adapter with a configuration of its own, so that one client can be checked alone. */
interface CheckedAdapter {
  platform: VideoPlatform;
  context: ReadingContext;
  /** How a video ends that is known to be served, through the egress that comes first. */
  control: () => Promise<ControlEnd>;
  /** What the metrics say about responses of one kind, such as `VISIONOS tracks`. */
  notices: (kind: string) => Promise<string[]>;
}

/**
 * Reads the newest uploads of a channel that can have captions as the service does, and one of them with each client alone.
 *
 * @param listener receives the traffic; null for none
 */
export async function examine(
  environment: Environment,
  listener: ExchangeListener | null,
  reference: ChannelReference,
  videosMax: number,
): Promise<DoctorReport> {
  const report: DoctorReport = { serves: null, channel: null, videos: [], findings: [] };
  await withAdapter(environment, listener, (adapter) => checkChannel(adapter, reference, videosMax, report));
  const outcomes = report.videos.map(({ outcome }) => outcome);
  const readable = outcomes.indexOf('ok');
  const tried = report.videos[readable === -1 ? outcomes.findIndex((code) => code.startsWith('upstream_')) : readable];
  const undecided = report.channel !== null && report.serves === null;
  for (const client of tried || undecided ? environment.YOUTUBE_CLIENTS : []) {
    // With a provider of PO tokens WEB would read what another client cannot.
    const tokens = client === 'WEB' ? {} : { PO_TOKEN_URL: undefined };
    const alone = Object.assign(new Environment(), environment, { YOUTUBE_CLIENTS: [client], ...tokens });
    await withAdapter(alone, listener, async (adapter) => {
      const { outcome } = tried ? await readVideo(adapter, tried.videoId, null) : { outcome: 'no video to ask for' };
      const playability = await adapter.notices('playability');
      // As the service finds out whether a refusal concerns the video, the client or the address.
      const control = client === 'WEB' ? 'not asked' : await adapter.control();
      if (undecided) report.serves ||= control === 'served';
      report.findings.push(`client ${[`${client} ${outcome}`, ...playability, `control ${control}`].join(', ')}`);
    });
  }
  return report;
}

async function checkChannel(
  adapter: CheckedAdapter,
  reference: ChannelReference,
  videosMax: number,
  report: DoctorReport,
): Promise<void> {
  const { platform, context, notices } = adapter;
  const { findings } = report;
  try {
    const channel = await platform.readChannel(await platform.resolveChannel(reference, context), context);
    report.channel = channel;
    findings.push(`channel ${channel.name} (${channel.handle ?? 'no handle'}, ${channel.id})`);
    const page = platform.uploads(channel.id, undefined, context);
    const { uploads, next, hidden, incomplete } = await platform.describe(channel.id, page, context);
    const end = next !== null ? ', and more' : incomplete && hidden === null ? ', then an unreadable page' : '';
    findings.push(`uploads ${uploads.length} listed${end}`);
    // The service does not request a video whose failure the list states, such as one that is live.
    const captioned = uploads.filter(({ failure }) => failure === null);
    report.videos = await Promise.all(
      captioned.slice(0, videosMax).map(async ({ videoId, title, publishedAt }) => {
        const read = await readVideo(adapter, videoId, publishedAt);
        report.serves ||= !read.outcome.startsWith('upstream_');
        return { videoId, title, ...read };
      }),
    );
  } catch (error) {
    const cause = error instanceof DomainError && error.cause instanceof Error ? `: ${error.cause.message}` : '';
    if (codeOf(error) !== 'channel_not_found') report.serves = false;
    findings.push(`FAILED ${codeOf(error)}${cause}`);
  }
  findings.push(...(await notices('shape')).map((each) => `page shape of ${each}`));
  findings.push(...(await notices('fields')).map((each) => `field mask ${each}`));
}

async function readVideo({ platform, context }: CheckedAdapter, videoId: string, publishedAt: string | null) {
  try {
    const outcome = await platform.readVideo(videoId, [], context, publishedAt);
    if (!outcome.ok) return { outcome: outcome.failure.code, lines: {} };
    const counts = [...outcome.transcript].map(([languageCode, segments]) => [languageCode, segments.length] as const);
    return { outcome: 'ok', lines: Object.fromEntries(counts) };
  } catch (error) {
    return { outcome: codeOf(error), lines: {} };
  }
}

/** The code of a failure. A reading rejects with `TimeoutError` when its deadline has passed. */
function codeOf(error: unknown): string {
  if (error instanceof DomainError) return error.code;
  if (error instanceof Error && error.name === 'TimeoutError') return 'upstream_timeout';
  throw error;
}

async function withAdapter(
  environment: Environment,
  listener: ExchangeListener | null,
  work: (adapter: CheckedAdapter) => Promise<void>,
): Promise<void> {
  const providers = listener ? [{ provide: ExchangeListener, useValue: listener }] : [];
  const adapter = { module: YoutubeModule, imports: [ConfigModule.forRoot(environment)], providers };
  const app = await NestFactory.createApplicationContext(adapter, { logger: false });
  const deadlineMs = environment.REQUEST_DEADLINE_SECONDS * 1000;
  const signal = AbortSignal.timeout(deadlineMs);
  const context = { signal, deadlineAtMs: performance.now() + deadlineMs, organizationId: '', fairnessKey: {} };
  const notices = async (kind: string): Promise<string[]> => {
    const metric = app.get<Registry>(Registry).getSingleMetric('ct_upstream_notices_total');
    const { values } = (await metric?.get()) ?? { values: [] };
    return values
      .filter(({ labels }) => labels['kind'] === kind)
      .map(({ labels }) => `${labels['subject']} ${labels['outcome']}`);
  };
  const control = async (): Promise<ControlEnd> => {
    const taken = app.get(EgressPool).take('video', [], context);
    return taken ? app.get(Experiment).probe(taken.egress, 'captions').finally(taken.release) : 'refused';
  };
  await work({ platform: app.get(VideoPlatform), context, control, notices }).finally(() => app.close());
}
