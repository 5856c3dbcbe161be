export {
  AdminClient,
  type AdminOptions,
  type AuditEntry,
  type AuditOptions,
  type PruneOptions,
  type Key,
  type Organization,
} from './admin.js';
export {
  ChannelTranscriptsClient,
  type ChannelTranscripts,
  type ChannelUploads,
  type PlaylistTranscripts,
  type Ready,
  type TranscriptsOptions,
  type UploadsOptions,
  type Usage,
  type VideoFormat,
  type VideosTranscripts,
  type VideoTranscript,
} from './client.js';
export {
  ChannelTranscriptsError,
  isChannelTranscriptsError,
  noResponseError,
  statedError,
  type ErrorCode,
  type ErrorFields,
  type KnownError,
} from './errors.js';
export { Credential, type CredentialOptions, type TokenProvider } from './credential.js';
export type { TranscriptsEvent } from './events.js';
export { pause, type CallOptions, type ClientOptions } from './http.js';
export type {
  Job,
  JobOptions,
  Jobs,
  JobSource,
  JobVideoTranscript,
  Labels,
  ListedOptions,
  ResultsOptions,
  WaitOptions,
} from './jobs.js';
export { OPERATIONS, type OperationId, type ParametersOf, type ResultOf } from './operations.js';
export type { components, operations, paths } from './schema.js';
export {
  followPages,
  pageOf,
  type FeedLine,
  type FeedLineOfAll,
  type FeedOptions,
  type FeedVideo,
  type FilterOptions,
  type FollowedVideo,
  type FollowOptions,
  type Subscription,
  type SubscriptionOptions,
  type Subscriptions,
} from './subscriptions.js';
export type { ListOptions, VideoOptions } from './video-options.js';
export {
  verifyWebhook,
  type HeadersGiven,
  type JobEvent,
  type QuotaEvent,
  type SubscriptionEvent,
  type UploadEvent,
  type Webhook,
  type WebhookChanges,
  type WebhookDelivery,
  type WebhookEvent,
  type WebhookOptions,
  type WebhookPayload,
  type Webhooks,
  type WebhookTestEvent,
  type WebhookTestResult,
  type WebhookWithSecret,
} from './webhooks.js';
