import { Module } from '@nestjs/common';
import { MetricsRegistryModule } from '../observability/metrics/metrics-registry.js';
import { QuotaModule } from '../quota/quota.module.js';
import { ChannelDirectory } from './channel-directory.js';
import { ResponseMemory } from './response/response-memory.js';
import { TranscriptMetrics } from './transcript-metrics.js';
import { TranscriptCache } from './cache/transcript-cache.js';
import { TranscriptsService } from './transcripts.service.js';
import { VideoFetches } from './video-fetches.js';

/** Needs a `VideoPlatform`, which the application provides. */
@Module({
  imports: [MetricsRegistryModule, QuotaModule],
  providers: [ChannelDirectory, ResponseMemory, TranscriptCache, TranscriptMetrics, VideoFetches, TranscriptsService],
  exports: [ResponseMemory, TranscriptMetrics, TranscriptsService],
})
export class TranscriptsModule {}
