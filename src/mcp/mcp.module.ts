import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { JobsModule } from '../jobs/jobs.module.js';
import { LibraryModule } from '../library/library.module.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { QuotaModule } from '../quota/quota.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { McpController } from './mcp.controller.js';
import { McpTools } from './mcp-tools.js';
import { ToolServices } from './tools/tool.js';

@Module({
  imports: [AuthModule, JobsModule, LibraryModule, MetricsRegistryModule, QuotaModule, TranscriptsModule],
  controllers: [McpController],
  providers: [McpTools, ToolServices],
})
export class McpModule {}
