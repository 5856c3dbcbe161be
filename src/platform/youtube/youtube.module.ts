import { Module } from '@nestjs/common';
import { Environment } from '../../config/environment.js';
import { UpstreamTraffic } from '../upstream-traffic.js';
import { VideoPlatform } from '../video-platform.js';
import { ChannelReader } from './channel/channel-reader.js';
import { UploadsReader } from './channel/uploads-reader.js';
import { EgressPool } from './egress/egress-pool.js';
import { FairLimiter } from './egress/fair-limiter.js';
import { BODY_BYTES_MAX } from './egress/http-transport.js';
import { RequestPipeline } from './egress/request-pipeline.js';
import { report } from './event-log.js';
import { InnertubeClient } from './innertube/innertube-client.js';
import { UpstreamEvents } from './upstream-events.js';
import { ClientHealth } from './video/client-health.js';
import { VideoReader } from './video/video-reader.js';
import { YoutubePlatform } from './youtube-platform.js';

/** YouTube as the platform behind the port. `Environment` has to be provided globally. */
@Module({
  providers: [
    UpstreamEvents,
    {
      provide: FairLimiter,
      inject: [Environment],
      useFactory: ({ UPSTREAM_CONCURRENCY }: Environment) => new FairLimiter(UPSTREAM_CONCURRENCY),
    },
    { provide: EgressPool, inject: [Environment, UpstreamEvents], useFactory: createEgressPool },
    { provide: RequestPipeline, inject: [Environment, FairLimiter, UpstreamEvents], useFactory: createPipeline },
    { provide: ClientHealth, inject: [Environment], useFactory: createClientHealth },
    InnertubeClient,
    UploadsReader,
    ChannelReader,
    VideoReader,
    YoutubePlatform,
    { provide: VideoPlatform, useExisting: YoutubePlatform },
    { provide: UpstreamTraffic, useExisting: UpstreamEvents },
  ],
  exports: [VideoPlatform, UpstreamTraffic],
})
export class YoutubeModule {}

function createEgressPool(environment: Environment, events: UpstreamEvents): EgressPool {
  return new EgressPool({
    proxyUrls: environment.UPSTREAM_PROXY_URL ?? [],
    connectionsMax: environment.UPSTREAM_CONCURRENCY,
    connectTimeoutMs: environment.UPSTREAM_TIMEOUT_SECONDS * 1000,
    onBreaker: (exit, use, openForMs) =>
      openForMs === null
        ? report('log', 'youtube_block_closed', { exit, use })
        : report('warn', 'youtube_block_opened', { exit, use, openForSeconds: openForMs / 1000 }),
    onCooldown: (exit, restMs) => report('log', 'youtube_exit_rested', { exit, restSeconds: restMs / 1000 }),
    onVerdict: (egress, use, verdict) => events.egress({ egress, use, verdict }),
  });
}

function createPipeline(environment: Environment, limiter: FairLimiter, events: UpstreamEvents): RequestPipeline {
  const { YOUTUBE_BASE_URL, UPSTREAM_TIMEOUT_SECONDS } = environment;
  return new RequestPipeline({
    limiter,
    baseUrl: YOUTUBE_BASE_URL === undefined ? null : new URL(YOUTUBE_BASE_URL),
    timeoutMs: UPSTREAM_TIMEOUT_SECONDS * 1000,
    bodyBytesMax: BODY_BYTES_MAX,
    events,
  });
}

function createClientHealth({ YOUTUBE_CLIENTS }: Environment): ClientHealth {
  return new ClientHealth(YOUTUBE_CLIENTS, ({ name: exit }, client, restMs) =>
    restMs === null
      ? report('log', 'youtube_client_back', { exit, client })
      : report('warn', 'youtube_client_rested', { exit, client, restSeconds: restMs / 1000 }),
  );
}
