import { NestFactory } from '@nestjs/core';
import { type Metric, Registry } from 'prom-client';
import { ConfigModule } from '../../../config/config.module.js';
import { Environment } from '../../../config/environment.js';
import type { ChannelReference } from '../../../domain/channel-reference.js';
import { DomainError } from '../../../domain/errors.js';
import type { Channel, Upload, VideoOutcome } from '../../../domain/transcript.js';
import { type ReadingContext, VideoPlatform } from '../../video-platform.js';
import { ExchangeListener } from '../egress/http-transport.js';
import { PoTokenProvider } from '../po-token/po-token-provider.js';
import { YoutubeModule } from '../youtube.module.js';

const REQUESTS = 'ct_upstream_requests_total';
const NOTICES = 'ct_upstream_notices_total';
/** What the metrics say about the pages that were read, by the kind that they are counted as. */
const PAGE_CHECKS = [
  { area: 'page shape', metric: NOTICES, kind: 'shape', expected: /^(?!unreadable)/ },
  { area: 'field mask', metric: NOTICES, kind: 'fields', expected: /^honoured$/ },
  { area: 'visitor id', metric: REQUESTS, kind: 'visitor', expected: /^ok$/ },
  { area: 'feed', metric: REQUESTS, kind: 'feed', expected: /^ok$/ },
];

/** One part that was checked: its area, and which client or egress where there are several. */
export interface Check {
  area: string;
  subject: string;
  works: boolean;
  detail: string;
}

/** What the doctor found. It contains no address, key or token. */
export interface DoctorReport {
  /** Whether the service would serve with this configuration. */
  serves: boolean;
  channel: Channel | null;
  checks: Check[];
  /** The outcome is `ok` or the code of the failure; lines are counted by language. */
  videos: { videoId: string; title: string | null; outcome: string; lines: Record<string, number> }[];
  /** What to set or do, most important first. */
  advice: string[];
}

/** The adapter with a configuration of its own, so that one client or egress can be checked alone. */
interface CheckedAdapter {
  platform: VideoPlatform;
  context: ReadingContext;
  /** The counts of a metric for one kind, such as `VISIONOS ok × 2`. */
  counts: (metric: string, kind: string) => Promise<{ subject: string; outcome: string; detail: string }[]>;
}

/** Checks each part of the adapter against the platform, with the given configuration and without the service. */
export class Doctor {
  private readonly report: DoctorReport = { serves: false, channel: null, checks: [], videos: [], advice: [] };

  /** @param listener receives the traffic; null for none */
  constructor(
    private readonly environment: Environment,
    private readonly listener: ExchangeListener | null,
  ) {}

  /** Reads the newest uploads of a channel as the service does, then with each client and through each proxy alone. */
  async examine(reference: ChannelReference, videosMax: number): Promise<DoctorReport> {
    const { environment, report } = this;
    await this.with({}, (adapter) => this.readAsTheServiceDoes(adapter, reference, videosMax));
    const readable = report.videos.find(({ outcome }) => outcome === 'ok');
    const videoId = (readable ?? report.videos.find(({ outcome }) => outcome.startsWith('upstream_')))?.videoId;
    if (videoId !== undefined) {
      for (const client of environment.YOUTUBE_CLIENTS) {
        // With a provider of PO tokens WEB would read what another client cannot.
        const tokens = client === 'WEB' ? {} : { PO_TOKEN_URL: undefined };
        const alone = { YOUTUBE_CLIENTS: [client], UPSTREAM_RETRIES: 0, PUBLISH_DATES: 'feed' as const, ...tokens };
        await this.with(alone, (adapter) => this.checkVideo('client', client, videoId, adapter));
      }
      await this.checkPoTokens(videoId);
      const proxies = environment.UPSTREAM_PROXY_URL ?? [];
      for (const [index, url] of proxies.length > 1 ? proxies.entries() : [])
        await this.with({ UPSTREAM_PROXY_URL: [url] }, (adapter) =>
          this.checkVideo('egress', `proxy-${index + 1}`, videoId, adapter),
        );
    }
    report.advice = adviceOf(report.checks, environment);
    return report;
  }

  private async readAsTheServiceDoes(adapter: CheckedAdapter, reference: ChannelReference, videosMax: number) {
    const { platform, context, counts } = adapter;
    const channel = await this.read(
      'channel',
      async () => platform.readChannel(await platform.resolveChannel(reference, context), context),
      ({ name, handle, id }) => `${name} (${handle ?? 'no handle'}, ${id})`,
    );
    if (channel === null) return;
    this.report.channel = channel;
    const list = await this.read(
      'uploads',
      () => platform.listUploads(channel.id, videosMax, context),
      ({ uploads, complete }) => `${uploads.length} listed${complete ? '' : ', and more'}`,
    );
    for (const { area, metric, kind, expected } of PAGE_CHECKS)
      for (const { subject, outcome, detail } of await counts(metric, kind))
        this.add(area, subject, expected.test(outcome), detail);
    const uploads = list?.uploads.slice(0, videosMax) ?? [];
    this.report.videos = await Promise.all(uploads.map((upload) => this.readUpload(upload, adapter)));
    const requested = this.report.videos.filter((_, index) => uploads[index]?.failure === null);
    const answered = requested.filter(({ outcome }) => !outcome.startsWith('upstream_'));
    this.report.serves = answered.length > 0;
    const requests = [...(await counts(REQUESTS, 'player')), ...(await counts(REQUESTS, 'captions'))];
    const details = [`${answered.length} of ${requested.length} answered`, ...requests.map(({ detail }) => detail)];
    if (requested.length > 0) this.add('videos', '', this.report.serves, details.join(', '));
  }

  private async readUpload(upload: Upload, { platform, context }: CheckedAdapter) {
    const { videoId, title, failure, publishedAt } = upload;
    // The service does not request a video whose failure the list states.
    if (failure !== null) return { videoId, title, outcome: failure, lines: {} };
    const outcome = await endOf(platform.readVideo(videoId, [], context, publishedAt));
    const texts = outcome.value?.ok === true ? [...outcome.value.transcript] : [];
    const lines = Object.fromEntries(texts.map(([languageCode, segments]) => [languageCode, segments.length]));
    return { videoId, title, outcome: codeOf(outcome), lines };
  }

  private async checkVideo(area: 'client' | 'egress', subject: string, videoId: string, adapter: CheckedAdapter) {
    const code = codeOf(await endOf(adapter.platform.readVideo(videoId, [], adapter.context)));
    const seen = [...(await adapter.counts(NOTICES, 'playability')), ...(await adapter.counts(REQUESTS, 'player'))].map(
      ({ detail }) => detail,
    );
    const works = area === 'client' ? code === 'ok' : !code.startsWith('upstream_');
    this.add(area, subject, works, [code, ...seen].join(', '));
  }

  private async checkPoTokens(videoId: string): Promise<void> {
    const { PO_TOKEN_URL, UPSTREAM_TIMEOUT_SECONDS } = this.environment;
    if (PO_TOKEN_URL === undefined) return;
    const provider = new PoTokenProvider({ url: new URL(PO_TOKEN_URL), requestsMax: 1 });
    const { value } = await endOf(provider.tokenFor(videoId, AbortSignal.timeout(UPSTREAM_TIMEOUT_SECONDS * 1000)));
    await provider.onApplicationShutdown();
    const works = typeof value === 'string';
    this.add('po token', '', works, works ? 'a token was issued' : 'no token was issued');
  }

  private async read<T>(area: string, reading: () => Promise<T>, describe: (value: T) => string): Promise<T | null> {
    const { value, failure } = await endOf(reading());
    this.add(area, '', value !== null, value === null ? failure : describe(value));
    return value;
  }

  private add(area: string, subject: string, works: boolean, detail: string): void {
    this.report.checks.push({ area, subject, works, detail });
  }

  private async with(changes: Partial<Environment>, work: (adapter: CheckedAdapter) => Promise<void>): Promise<void> {
    const changed = Object.assign(new Environment(), this.environment, changes);
    const providers = this.listener ? [{ provide: ExchangeListener, useValue: this.listener }] : [];
    const adapter = { module: YoutubeModule, imports: [ConfigModule.forRoot(changed)], providers };
    const app = await NestFactory.createApplicationContext(adapter, { logger: false });
    const deadlineMs = changed.REQUEST_DEADLINE_SECONDS * 1000;
    const registry = app.get<Registry>(Registry);
    const context = {
      signal: AbortSignal.timeout(deadlineMs),
      deadlineAtMs: performance.now() + deadlineMs,
      fairnessKey: {},
    };
    const counts = (metric: string, kind: string) => countsOf(registry.getSingleMetric(metric), kind);
    await work({ platform: app.get(VideoPlatform), context, counts }).finally(() => app.close());
  }
}

async function countsOf(metric: Metric | undefined, kind: string) {
  const { values } = (await metric?.get()) ?? { values: [] };
  return values
    .filter(({ labels, value }) => labels['kind'] === kind && value > 0)
    .map(({ labels, value }) => {
      const subject = String(labels['client'] ?? labels['subject']);
      const outcome = String(labels['outcome']);
      return { subject, outcome, detail: `${kind} ${subject} ${outcome} × ${value}` };
    });
}

/** How a reading ended: its value, or its failure in one line without a stack. */
async function endOf<T>(reading: Promise<T>): Promise<{ value: T | null; failure: string }> {
  try {
    return { value: await reading, failure: '' };
  } catch (error) {
    if (error instanceof DomainError) {
      const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
      return { value: null, failure: `${error.code}${cause}` };
    }
    if (!(error instanceof Error && error.name === 'TimeoutError')) throw error;
    return { value: null, failure: 'upstream_timeout: no response within REQUEST_DEADLINE_SECONDS' };
  }
}

function codeOf({ value, failure }: { value: VideoOutcome | null; failure: string }): string {
  if (value === null) return failure.split(':', 1)[0] ?? failure;
  return value.ok ? 'ok' : value.failure.code;
}

/** What the operator should set or do about the failed checks, most important first. */
function adviceOf(checks: readonly Check[], environment: Environment): string[] {
  const of = (area: string, works: boolean): Check[] =>
    checks.filter((check) => check.area === area && check.works === works);
  const named = (found: readonly Check[]): string => found.map(({ subject }) => subject).join(',');
  const lookups = [...of('channel', false), ...of('uploads', false)].map(({ detail }) => detail).join();
  const working = of('client', true);
  const failed = of('client', false);
  const retired = failed.filter(({ detail }) => /client-retired|http-4xx/.test(detail));
  const allRefused = working.length === 0 && retired.length < failed.length;
  const advice: string[] = [];

  if (lookups.includes('channel_not_found')) advice.push('Name a channel that exists.');
  else if (of('uploads', true).length > 0 && !checks.some(({ area }) => area === 'videos'))
    advice.push('Name a channel that has uploads with captions: this one has none to try.');
  if (lookups.includes('expected') || of('page shape', false).length > 0)
    advice.push('A newer release of this service: the form of YouTube’s pages has changed.');
  if (working.length > 0 && failed.length > 0) advice.push(`YOUTUBE_CLIENTS=${named(working)}`);
  for (const { subject } of retired)
    advice.push(`YOUTUBE_CLIENT_OVERRIDES={"${subject}":{"clientVersion":"…"}}: its version is no longer served.`);
  if (allRefused || lookups.includes('upstream_blocked') || of('videos', false)[0]?.detail.includes('blocked:'))
    advice.push(
      environment.UPSTREAM_PROXY_URL === undefined
        ? 'UPSTREAM_PROXY_URL: YouTube refuses this address; use residential proxies or a gateway.'
        : 'UPSTREAM_PROXY_URL: YouTube refuses these addresses; use others.',
    );
  if (allRefused && environment.PO_TOKEN_URL === undefined)
    advice.push('PO_TOKEN_URL: captions that need a token are then read as WEB.');
  if (of('egress', true).length > 0 && of('egress', false).length > 0)
    advice.push(`UPSTREAM_PROXY_URL: keep ${named(of('egress', true))}, in the order of the list.`);
  if (of('po token', false).length > 0) advice.push('PO_TOKEN_URL: start the provider, or correct its address.');
  if (of('feed', false).length > 0 && environment.PUBLISH_DATES === 'feed')
    advice.push('PUBLISH_DATES=exact: the feed is unavailable, so dates are null.');
  return advice;
}
