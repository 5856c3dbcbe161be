import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { BackgroundModule } from '../background/background-loops.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { QuotaModule } from '../quota/quota.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { SourceRepository } from './sources/source.repository.js';
import { SourceRunner } from './sources/source-runner.js';
import { JobMetrics } from './job-metrics.js';
import { JobWorker } from './work/job-worker.js';
import { JobsController } from './jobs.controller.js';
import { JobsService } from './jobs.service.js';
import { FeedController } from './results/feed.controller.js';
import { FeedService } from './results/feed.service.js';
import { ResultsResponse } from './results/results-response.js';
import { SliceReader } from './work/slice-reader.js';
import { SliceRunner } from './work/slice-runner.js';
import { SliceRepository } from './work/slice.repository.js';
import { SubscriptionsController } from './subscriptions.controller.js';
import { SubscriptionsService } from './subscriptions.service.js';

/** Archive jobs and subscriptions: channels, in slices that any process runs. */
@Module({
  imports: [AuthModule, BackgroundModule, MetricsRegistryModule, QuotaModule, TranscriptsModule],
  controllers: [FeedController, JobsController, SubscriptionsController],
  providers: [
    FeedService,
    JobMetrics,
    JobsService,
    JobWorker,
    ResultsResponse,
    SliceReader,
    SliceRepository,
    SliceRunner,
    SourceRepository,
    SourceRunner,
    SubscriptionsService,
  ],
  exports: [BackgroundModule, FeedService, JobsService, JobWorker, ResultsResponse, SubscriptionsService],
})
export class JobsModule {}
