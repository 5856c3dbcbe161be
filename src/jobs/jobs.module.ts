import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { BackgroundModule } from '../background/background-loops.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { QuotaModule } from '../quota/quota.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { CheckReader } from './check-reader.js';
import { JobMetrics } from './job-metrics.js';
import { JobRepository } from './job.repository.js';
import { JobWorker } from './job-worker.js';
import { JobsController } from './jobs.controller.js';
import { JobsService } from './jobs.service.js';
import { ResultsResponse } from './results-response.js';
import { SliceReader } from './slice-reader.js';
import { SliceRunner } from './slice-runner.js';
import { SliceRepository } from './slice.repository.js';

/** Archive jobs: whole channels, in slices that any process runs. */
@Module({
  imports: [BackgroundModule, MetricsRegistryModule, QuotaModule, TranscriptsModule],
  providers: [
    CheckReader,
    JobMetrics,
    JobRepository,
    JobsService,
    JobWorker,
    SliceReader,
    SliceRepository,
    SliceRunner,
  ],
  exports: [BackgroundModule, JobsService, JobWorker],
})
export class JobEngineModule {}

/** The operations on archive jobs over HTTP. */
@Module({
  imports: [AuthModule, JobEngineModule, TranscriptsModule],
  controllers: [JobsController],
  providers: [ResultsResponse],
  exports: [JobEngineModule],
})
export class JobsModule {}
