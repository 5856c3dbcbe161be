import { Injectable } from '@nestjs/common';
import { Environment } from '../../config/environment.js';
import { redactorFor, type Redactor } from '../../observability/logging/redaction.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { QuotaService } from '../../quota/quota.service.js';
import { CallsInFlight } from '../../rate-limit/calls-in-flight.js';
import { TranscriptCache } from '../../transcripts/cache/transcript-cache.js';
import { ChannelUploads } from '../../transcripts/sources/channel-uploads.js';
import { TranscriptsService } from '../../transcripts/transcripts.service.js';
import { McpMetrics } from '../mcp-metrics.js';

/** What the tools use. Apart from them, so that the SDK and the schemas are loaded with the first message only. */
@Injectable()
export class ToolServices {
  readonly redact: Redactor;

  constructor(
    readonly transcripts: TranscriptsService,
    readonly cache: TranscriptCache,
    readonly uploads: ChannelUploads,
    readonly quota: QuotaService,
    readonly jobs: JobsService,
    readonly inFlight: CallsInFlight,
    readonly metrics: McpMetrics,
    environment: Environment,
  ) {
    this.redact = redactorFor(environment);
  }
}
