import { Module } from '@nestjs/common';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { QuotaModule } from '../quota/quota.module.js';
import { TranscriptCache } from './cache/transcript-cache.js';
import { VideoFetcher } from './delivery/video-fetcher.js';
import { ResponseMemory } from './delivery/response-memory.js';
import { ResponseWriter } from './response/response-writer.js';
import { TranscriptsResponse } from './response/transcripts-response.js';
import { ChannelUploads } from './sources/channel-uploads.js';
import { PlaylistSource } from './sources/playlist-source.js';
import { TranscriptMetrics } from './transcript-metrics.js';
import { TranscriptsService } from './transcripts.service.js';

const EXPORTS = [
  ChannelUploads,
  PlaylistSource,
  ResponseMemory,
  ResponseWriter,
  TranscriptCache,
  TranscriptMetrics,
  TranscriptsResponse,
  TranscriptsService,
];

/** Requires a `VideoPlatform`, which the application provides. */
@Module({
  imports: [MetricsRegistryModule, QuotaModule],
  providers: [...EXPORTS, VideoFetcher],
  exports: EXPORTS,
})
export class TranscriptsModule {}
