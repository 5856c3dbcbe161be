import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { JobsController } from './jobs.controller.js';
import { JobsService } from './jobs.service.js';
import { ResultsResponse } from './results-response.js';

@Module({
  imports: [AuthModule, TranscriptsModule],
  controllers: [JobsController],
  providers: [JobsService, ResultsResponse],
})
export class JobsModule {}
