import { Module } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Environment } from '../../config/environment.js';
import { MetricsRegistryModule } from '../../observability/metrics-registry.js';
import { VideoPlatform } from '../video-platform.js';
import { ChannelReader } from './channel/channel-reader.js';
import { PlaylistReader } from './channel/playlist-reader.js';
import { EgressPool } from './egress/egress-pool.js';
import { FairLimiter } from './egress/fair-limiter.js';
import { BODY_BYTES_MAX, ExchangeListener } from './egress/http-transport.js';
import { RequestPipeline } from './egress/request-pipeline.js';
import { InnertubeClient } from './innertube/innertube-client.js';
import { PoTokenProvider } from './po-token/po-token-provider.js';
import { SignatureTimestamp, WebProofs } from './po-token/web-proofs.js';
import { UpstreamMetrics } from './upstream-metrics.js';
import { ClientOrder } from './video/client-order.js';
import { VideoReader } from './video/video-reader.js';
import { YoutubePlatform } from './youtube-platform.js';

/** YouTube as the implementation of `VideoPlatform`. Requires a global provider of `Environment`. */
@Module({
  imports: [MetricsRegistryModule],
  providers: [
    UpstreamMetrics,
    {
      provide: FairLimiter,
      inject: [Environment],
      useFactory: ({ UPSTREAM_CONCURRENCY }: Environment) => new FairLimiter(UPSTREAM_CONCURRENCY),
    },
    {
      provide: EgressPool,
      inject: [Environment, Registry, FairLimiter],
      useFactory: createEgressPool,
    },
    {
      provide: RequestPipeline,
      inject: [Environment, FairLimiter, UpstreamMetrics, { token: ExchangeListener, optional: true }],
      useFactory: createPipeline,
    },
    ClientOrder,
    { provide: PoTokenProvider, inject: [Environment], useFactory: createPoTokenProvider },
    SignatureTimestamp,
    WebProofs,
    InnertubeClient,
    PlaylistReader,
    ChannelReader,
    VideoReader,
    YoutubePlatform,
    { provide: VideoPlatform, useExisting: YoutubePlatform },
  ],
  exports: [VideoPlatform],
})
export class YoutubeModule {}

function createEgressPool(environment: Environment, registry: Registry, limiter: FairLimiter): EgressPool {
  return new EgressPool({
    registry,
    limiter,
    proxyUrls: environment.UPSTREAM_PROXY_URL ?? [],
    connectionsMax: environment.UPSTREAM_CONCURRENCY,
    connectTimeoutMs: environment.UPSTREAM_TIMEOUT_SECONDS * 1000,
    ceilings: {
      player: environment.UPSTREAM_PLAYER_PER_MINUTE,
      captions: environment.UPSTREAM_TIMEDTEXT_PER_MINUTE,
    },
  });
}

function createPipeline(
  environment: Environment,
  limiter: FairLimiter,
  metrics: UpstreamMetrics,
  listener?: ExchangeListener,
): RequestPipeline {
  const { YOUTUBE_BASE_URL, UPSTREAM_TIMEOUT_SECONDS } = environment;
  return new RequestPipeline({
    limiter,
    baseUrl: YOUTUBE_BASE_URL === undefined ? null : new URL(YOUTUBE_BASE_URL),
    timeoutMs: UPSTREAM_TIMEOUT_SECONDS * 1000,
    bodyBytesMax: BODY_BYTES_MAX,
    metrics,
    listener,
  });
}

function createPoTokenProvider({ PO_TOKEN_URL, UPSTREAM_CONCURRENCY }: Environment): PoTokenProvider | null {
  if (PO_TOKEN_URL === undefined) return null;
  return new PoTokenProvider({ url: new URL(PO_TOKEN_URL), requestsMax: UPSTREAM_CONCURRENCY });
}
