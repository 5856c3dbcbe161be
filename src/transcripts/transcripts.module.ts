import { Module } from '@nestjs/common';
import { MetricsRegistryModule } from '../observability/metrics/metrics-registry.js';
import { QuotaModule } from '../quota/quota.module.js';
import { TranscriptCache } from './cache/transcript-cache.js';
import { ChannelUploads } from './channel-uploads.js';
import { VideoFetcher } from './fetching.js';
import { QuotaReservations } from './quota-reservations.js';
import { AssembledBodies } from './response/assembled-bodies.js';
import { ResponseBodies } from './response/response-bodies.js';
import { ResponseMemory } from './response/response-memory.js';
import { TranscriptDelivery } from './transcript-delivery.js';
import { TranscriptMetrics } from './transcript-metrics.js';
import { TranscriptPlanner } from './transcript-planner.js';
import { TranscriptsService } from './transcripts.service.js';

/** Requires a `VideoPlatform`, which the application provides. */
@Module({
  imports: [MetricsRegistryModule, QuotaModule],
  providers: [
    AssembledBodies,
    ChannelUploads,
    QuotaReservations,
    ResponseBodies,
    ResponseMemory,
    TranscriptCache,
    TranscriptDelivery,
    TranscriptMetrics,
    TranscriptPlanner,
    TranscriptsService,
    VideoFetcher,
  ],
  exports: [ResponseMemory, TranscriptMetrics, TranscriptsService],
})
export class TranscriptsModule {}
