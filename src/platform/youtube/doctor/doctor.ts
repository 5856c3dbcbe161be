import type { Environment, YoutubeClient } from '../../../config/environment.js';
import type { ChannelReference } from '../../../domain/channel-reference.js';
import type { Channel, Upload } from '../../../domain/transcript.js';
import type { ExchangeListener } from '../egress/exchange-listener.js';
import { HttpPoTokenProvider } from '../po-token/http-po-token-provider.js';
import { adviceOf } from './advice.js';
import { type CheckedAdapter, timed, type Timed, withAdapter } from './checked-adapter.js';
import type { Check, CheckedArea, CheckedVideo, DoctorReport } from './doctor-report.js';

const NOTICES = 'ct_upstream_notices_total';
const REQUESTS = 'ct_upstream_requests_total';

export interface DoctorOptions {
  environment: Environment;
  reference: ChannelReference;
  /** How many of the newest uploads are read. */
  videosMax: number;
  /** Receives the traffic; null for none. */
  listener: ExchangeListener | null;
}

/** Checks each part of the adapter against the platform, with the given configuration and without the service. */
export class Doctor {
  private readonly checks: Check[] = [];
  private videos: CheckedVideo[] = [];
  private uploads: readonly Upload[] = [];
  private channel: Channel | null = null;
  /** Videos that were requested and for which the platform returned a text or a fact. */
  private answeredCount = 0;

  constructor(private readonly options: DoctorOptions) {}

  async examine(): Promise<DoctorReport> {
    const { environment } = this.options;
    // The first reading is the one that a replay of the recorded traffic repeats.
    await this.readAsTheServiceDoes();
    const videoId = this.testVideo();
    if (videoId !== null) {
      for (const client of environment.YOUTUBE_CLIENTS) await this.checkClient(client, videoId);
      if (environment.PO_TOKEN_URL !== undefined) await this.checkPoTokens(environment.PO_TOKEN_URL, videoId);
    }
    const proxies = environment.UPSTREAM_PROXY_URL ?? [];
    if (proxies.length > 1)
      for (const [index, url] of proxies.entries()) await this.checkEgress(`proxy-${index + 1}`, url, videoId);
    const { checks, videos, channel } = this;
    const serves = this.answeredCount > 0;
    return { serves, channel, checks, videos, advice: adviceOf(checks, environment) };
  }

  /** The channel, its uploads and its videos. */
  private async readAsTheServiceDoes(): Promise<void> {
    await this.with({}, async (adapter) => {
      await this.readList(adapter);
      await this.checkPages(adapter);
      await this.readVideos(adapter);
    });
  }

  private async readList({ platform, context }: CheckedAdapter): Promise<void> {
    const { reference, videosMax } = this.options;
    const channel = await timed(async () =>
      platform.readChannel(await platform.resolveChannel(reference, context()), context()),
    );
    this.add('channel', '', channel, ({ name, handle, id }) => `${name} (${handle ?? 'no handle'}, ${id})`);
    if (!('value' in channel)) return;
    this.channel = channel.value;
    const list = await timed(() => platform.listUploads(channel.value.id, videosMax, context()));
    this.add('uploads', '', list, ({ uploads, complete }) => `${uploads.length} listed${complete ? '' : ', and more'}`);
    if ('value' in list) this.uploads = list.value.uploads.slice(0, videosMax);
  }

  private async checkPages({ counts }: CheckedAdapter): Promise<void> {
    const check = async (area: CheckedArea, metric: string, kind: string, works: (outcome: string) => boolean) => {
      const found = await counts(metric, { kind }, metric === NOTICES ? 'subject' : 'client', 'outcome');
      for (const [key, count] of found) {
        const [subject = '', outcome = ''] = key.split(' ');
        this.checks.push({ area, subject, works: works(outcome), milliseconds: null, detail: `${outcome} × ${count}` });
      }
    };
    await check('page shape', NOTICES, 'shape', (shape) => shape !== 'unreadable');
    await check('field mask', NOTICES, 'fields', (outcome) => outcome === 'honoured');
    await check('visitor id', REQUESTS, 'visitor', (outcome) => outcome === 'ok');
    await check('feed', REQUESTS, 'feed', (outcome) => outcome === 'ok');
  }

  private async readVideos({ platform, context, counts }: CheckedAdapter): Promise<void> {
    const requestedCount = this.uploads.filter(({ failure }) => failure === null).length;
    if (this.uploads.length === 0) return;
    const call = context();
    const startedAtMs = performance.now();
    const read = async (upload: Upload): Promise<CheckedVideo> => {
      const { videoId, kind, title, failure } = upload;
      // The service does not request a video whose failure the list states.
      if (failure !== null) return { videoId, kind, title, outcome: failure, lines: {} };
      const result = await timed(() => platform.readVideo(videoId, [], call, upload.publishedAt));
      const outcome = 'value' in result ? result.value : null;
      const code = outcome === null ? 'upstream_timeout' : outcome.ok ? 'ok' : outcome.failure.code;
      if (!code.startsWith('upstream_')) this.answeredCount += 1;
      const texts = outcome?.ok === true ? [...outcome.transcript] : [];
      const lines = Object.fromEntries(texts.map(([languageCode, segments]) => [languageCode, segments.length]));
      return { videoId, kind, title, outcome: code, lines };
    };
    this.videos = await Promise.all(this.uploads.map(read));
    const players = await counts(REQUESTS, { kind: 'player' }, 'client', 'outcome');
    const captions = await counts(REQUESTS, { kind: 'captions' }, 'client', 'outcome');
    if (requestedCount === 0) return;
    const detail = `${this.answeredCount} of ${requestedCount} answered`;
    this.checks.push({
      area: 'videos',
      subject: '',
      works: this.answeredCount > 0,
      milliseconds: Math.round(performance.now() - startedAtMs),
      detail: `${detail}; player ${shown(players)}; captions ${shown(captions)}`,
    });
  }

  /** A video that has captions, as far as is known. */
  private testVideo(): string | null {
    const readable = this.videos.find(({ outcome }) => outcome === 'ok');
    return (readable ?? this.uploads.find(({ failure }) => failure === null))?.videoId ?? null;
  }

  private async checkClient(client: YoutubeClient, videoId: string): Promise<void> {
    const alone: Partial<Environment> = {
      YOUTUBE_CLIENTS: [client],
      UPSTREAM_RETRIES: 0,
      PUBLISH_DATES: 'feed',
      // With a provider of PO tokens WEB would read what this client cannot.
      PO_TOKEN_URL: client === 'WEB' ? this.options.environment.PO_TOKEN_URL : undefined,
    };
    await this.with(alone, async ({ platform, context, counts }) => {
      const result = await timed(() => platform.readVideo(videoId, [], context()));
      const outcome = 'value' in result ? result.value : null;
      const playability = await counts(NOTICES, { kind: 'playability' }, 'outcome');
      const players = await counts(REQUESTS, { kind: 'player' }, 'outcome');
      const code = outcome === null ? 'upstream_timeout' : outcome.ok ? 'ok' : outcome.failure.code;
      this.checks.push({
        area: 'client',
        subject: client,
        works: code === 'ok',
        milliseconds: result.milliseconds,
        detail: `${code}; player ${shown(playability.size > 0 ? playability : players)}`,
      });
    });
  }

  private async checkPoTokens(url: string, videoId: string): Promise<void> {
    const provider = new HttpPoTokenProvider({ url: new URL(url), requestsMax: 1, onChange: () => undefined });
    const seconds = this.options.environment.UPSTREAM_TIMEOUT_SECONDS;
    const result = await timed(() => provider.tokenFor(videoId, AbortSignal.timeout(seconds * 1000)));
    await provider.onApplicationShutdown();
    const works = 'value' in result && result.value !== null;
    const detail = works ? 'a token was issued' : 'no token was issued';
    this.checks.push({ area: 'po token', subject: '', works, milliseconds: result.milliseconds, detail });
  }

  private async checkEgress(subject: string, proxyUrl: string, videoId: string | null): Promise<void> {
    const { reference } = this.options;
    await this.with({ UPSTREAM_PROXY_URL: [proxyUrl] }, async ({ platform, context }) => {
      const result = await timed(async () => {
        if (videoId === null) {
          await platform.readChannel(
            this.channel?.id ?? (await platform.resolveChannel(reference, context())),
            context(),
          );
          return 'ok';
        }
        const outcome = await platform.readVideo(videoId, [], context());
        return outcome.ok ? 'ok' : outcome.failure.code;
      });
      const code = 'value' in result ? result.value : result.code;
      const works = !code.startsWith('upstream_');
      this.checks.push({ area: 'egress', subject, works, milliseconds: result.milliseconds, detail: code });
    });
  }

  private with<T>(changes: Partial<Environment>, work: (adapter: CheckedAdapter) => Promise<T>): Promise<T> {
    return withAdapter(this.options.environment, changes, this.options.listener, work);
  }

  private add<T>(area: CheckedArea, subject: string, result: Timed<T>, detailOf: (value: T) => string): void {
    const works = 'value' in result;
    const detail = works ? detailOf(result.value) : result.failure;
    this.checks.push({ area, subject, works, milliseconds: result.milliseconds, detail });
  }
}

function shown(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([key, count]) => `${key} × ${count}`).join(', ') || 'none';
}
