import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { BackgroundModule } from '../background/background-loops.js';
import { JobsModule } from '../jobs/jobs.module.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { LibraryController } from './library.controller.js';
import { LibraryService } from './library.service.js';
import { LibraryPageController } from './page.controller.js';
import { LibraryUpkeep } from './library-upkeep.js';

/** What organizations keep, and its search. */
@Module({
  imports: [AuthModule, JobsModule, TranscriptsModule],
  controllers: [LibraryController, LibraryPageController],
  providers: [LibraryService],
  exports: [LibraryService],
})
export class LibraryModule {}

/** The upkeep of all libraries, which is work of the service alone. */
@Module({
  imports: [BackgroundModule, MetricsRegistryModule, TranscriptsModule],
  providers: [LibraryUpkeep],
})
export class LibraryUpkeepModule {}
