export { ChannelTranscriptsError, isChannelTranscriptsError } from '@channel-transcripts/client';
export { ChannelTranscripts, type Operations } from './channel-transcripts.js';
export { ChannelTranscriptsExceptionFilter } from './exception-filter.js';
export { ChannelTranscriptsHealthIndicator, type HealthResult } from './health.js';
export { ChannelTranscriptsModule } from './module.js';
export type { ChannelTranscriptsOptions } from './options.js';
export { ChannelTranscriptsTestingModule } from './testing.js';
