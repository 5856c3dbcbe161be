import { Module } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Environment } from '../../config/environment.js';
import { MetricsRegistryModule } from '../../observability/metrics-registry.js';
import { EgressStates } from '../egress-states.js';
import { VideoPlatform } from '../video-platform.js';
import { ChannelReader, ControlChannels } from './channel/channel-reader.js';
import { ListAdditions } from './channel/list-additions.js';
import { ListReader } from './channel/list-reader.js';
import { EgressPool } from './egress/egress-pool.js';
import { Experiment } from './egress/experiment.js';
import { RequestPipeline } from './egress/request-pipeline.js';
import { RequestQueue } from './egress/request-queue.js';
import { InnertubeClient } from './innertube/innertube-client.js';
import { WebVersion } from './innertube/web-version.js';
import { UpstreamMetrics } from './upstream-metrics.js';
import { ClientOrder } from './video/client-order.js';
import { ControlVideos } from './video/player-requests.js';
import { VideoReader } from './video/video-reader.js';
import { WebProofs } from './video/web-proofs.js';
import { YoutubePlatform } from './youtube-platform.js';

/** YouTube as the implementation of `VideoPlatform`. Requires a global provider of `Environment`. */
@Module({
  imports: [MetricsRegistryModule],
  providers: [
    UpstreamMetrics,
    {
      provide: RequestQueue,
      inject: [Environment],
      useFactory: (environment: Environment) => new RequestQueue(environment.upstreamSlots),
    },
    {
      provide: EgressPool,
      inject: [Environment, Registry, RequestQueue, Experiment],
      useFactory: (environment: Environment, registry: Registry, queue: RequestQueue, experiment: Experiment) =>
        new EgressPool(environment, registry, queue, experiment),
    },
    {
      provide: Experiment,
      inject: [ControlVideos, ControlChannels, UpstreamMetrics],
      useFactory: (video: ControlVideos, channel: ControlChannels, metrics: UpstreamMetrics) =>
        new Experiment({ video, channel }, metrics),
    },
    RequestPipeline,
    ClientOrder,
    WebProofs,
    WebVersion,
    InnertubeClient,
    ChannelReader,
    ControlChannels,
    ListReader,
    ListAdditions,
    ControlVideos,
    VideoReader,
    YoutubePlatform,
    { provide: VideoPlatform, useExisting: YoutubePlatform },
    { provide: EgressStates, useExisting: EgressPool },
  ],
  exports: [VideoPlatform, EgressStates],
})
export class YoutubeModule {}
