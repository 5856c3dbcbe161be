import { Module } from '@nestjs/common';
import { Registry } from 'prom-client';
import { SharedDocuments } from '../../cache/shared-documents.js';
import { Environment } from '../../config/environment.js';
import { MetricsRegistryModule } from '../../observability/metrics/metrics-registry.js';
import { VideoPlatform } from '../video-platform.js';
import { Channels } from './channel/channels.js';
import { PlaylistReader } from './channel/playlist-reader.js';
import { EgressPool } from './egress/egress-pool.js';
import { EgressStateStore } from './egress/egress-state-store.js';
import { ExchangeListener } from './egress/exchange-listener.js';
import { FairLimiter } from './egress/fair-limiter.js';
import { BODY_BYTES_MAX } from './egress/http-transport.js';
import { RequestPipeline } from './egress/request-pipeline.js';
import { report } from './event-log.js';
import { InnertubeClient } from './innertube/innertube-client.js';
import { HttpPoTokenProvider } from './po-token/http-po-token-provider.js';
import { NoPoTokenProvider, PoTokenProvider } from './po-token/po-token-provider.js';
import { SignatureTimestamp } from './po-token/signature-timestamp.js';
import { WebProofs } from './po-token/web-proofs.js';
import { UpstreamMetrics } from './upstream-metrics.js';
import { ClientHealth } from './video/client-fallback.js';
import { RetiredClients } from './video/retired-clients.js';
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
      inject: [Environment, Registry, { token: SharedDocuments, optional: true }],
      useFactory: createEgressPool,
    },
    {
      provide: RequestPipeline,
      inject: [Environment, FairLimiter, EgressPool, UpstreamMetrics, { token: ExchangeListener, optional: true }],
      useFactory: createPipeline,
    },
    { provide: ClientHealth, inject: [Environment], useFactory: createClientHealth },
    { provide: RetiredClients, inject: [Environment, Registry], useFactory: createRetiredClients },
    { provide: PoTokenProvider, inject: [Environment], useFactory: createPoTokenProvider },
    SignatureTimestamp,
    WebProofs,
    InnertubeClient,
    PlaylistReader,
    Channels,
    VideoReader,
    YoutubePlatform,
    { provide: VideoPlatform, useExisting: YoutubePlatform },
  ],
  exports: [VideoPlatform],
})
export class YoutubeModule {}

function createEgressPool(environment: Environment, registry: Registry, documents?: SharedDocuments): EgressPool {
  return new EgressPool({
    registry,
    proxyUrls: environment.UPSTREAM_PROXY_URL ?? [],
    connectionsMax: environment.UPSTREAM_CONCURRENCY,
    connectTimeoutMs: environment.UPSTREAM_TIMEOUT_SECONDS * 1000,
    ceilings: {
      player: environment.UPSTREAM_PLAYER_PER_MINUTE,
      captions: environment.UPSTREAM_TIMEDTEXT_PER_MINUTE,
    },
    store: new EgressStateStore(documents),
    onBreaker: (exit, use, openForMs) =>
      openForMs === null
        ? report('log', 'youtube_block_closed', { exit, use })
        : report('warn', 'youtube_block_opened', { exit, use, openForSeconds: openForMs / 1000 }),
    onPace: (exit, { player, captions }) =>
      report('log', 'youtube_pace_learned', { exit, playerPerMinute: player, captionsPerMinute: captions }),
    onCooldown: (exit, cooldownMs) => report('log', 'youtube_exit_rested', { exit, restSeconds: cooldownMs / 1000 }),
  });
}

function createPipeline(
  environment: Environment,
  limiter: FairLimiter,
  egresses: EgressPool,
  metrics: UpstreamMetrics,
  listener?: ExchangeListener,
): RequestPipeline {
  const { YOUTUBE_BASE_URL, UPSTREAM_TIMEOUT_SECONDS } = environment;
  return new RequestPipeline({
    limiter,
    egresses,
    baseUrl: YOUTUBE_BASE_URL === undefined ? null : new URL(YOUTUBE_BASE_URL),
    timeoutMs: UPSTREAM_TIMEOUT_SECONDS * 1000,
    bodyBytesMax: BODY_BYTES_MAX,
    metrics,
    listener,
  });
}

function createClientHealth({ YOUTUBE_CLIENTS }: Environment): ClientHealth {
  return new ClientHealth(YOUTUBE_CLIENTS, ({ name: exit }, client, cooldownMs) =>
    cooldownMs === null
      ? report('log', 'youtube_client_back', { exit, client })
      : report('warn', 'youtube_client_rested', { exit, client, restSeconds: cooldownMs / 1000 }),
  );
}

function createPoTokenProvider({ PO_TOKEN_URL, UPSTREAM_CONCURRENCY }: Environment): PoTokenProvider {
  if (PO_TOKEN_URL === undefined) return new NoPoTokenProvider();
  return new HttpPoTokenProvider({
    url: new URL(PO_TOKEN_URL),
    requestsMax: UPSTREAM_CONCURRENCY,
    onChange: (pauseMs) =>
      pauseMs === null
        ? report('log', 'youtube_po_token_provider_back', {})
        : report('warn', 'youtube_po_token_provider_down', { pauseSeconds: pauseMs / 1000 }),
  });
}

function createRetiredClients({ YOUTUBE_CLIENTS }: Environment, registry: Registry): RetiredClients {
  return new RetiredClients(YOUTUBE_CLIENTS, registry, (client, probeAfterMs) =>
    probeAfterMs === null
      ? report('log', 'youtube_client_reinstated', { client })
      : report('warn', 'youtube_client_retired', { client, probeAfterSeconds: probeAfterMs / 1000 }),
  );
}
