import type { operations } from './schema.js';

/** Every operation of the OpenAPI document by its `operationId`: method and path. */
export const OPERATIONS = {
  getChannelTranscripts: 'GET /channels/{id}/transcripts',
  listChannelUploads: 'GET /channels/{id}/uploads',
  getPlaylistTranscripts: 'GET /playlists/{id}/transcripts',
  listPlaylistVideos: 'GET /playlists/{id}/videos',
  getVideoTranscript: 'GET /videos/{id}/transcript',
  getVideoTranscripts: 'POST /transcripts',
  getUsage: 'GET /usage',
  listChanges: 'GET /audit',
  createJob: 'POST /jobs',
  listJobs: 'GET /jobs',
  getJob: 'GET /jobs/{id}',
  deleteJob: 'DELETE /jobs/{id}',
  changeJob: 'PATCH /jobs/{id}',
  cancelJob: 'POST /jobs/{id}/cancel',
  resumeJob: 'POST /jobs/{id}/resume',
  getJobResults: 'GET /jobs/{id}/results',
  createSubscription: 'POST /subscriptions',
  listSubscriptions: 'GET /subscriptions',
  getSubscription: 'GET /subscriptions/{id}',
  changeSubscription: 'PATCH /subscriptions/{id}',
  deleteSubscription: 'DELETE /subscriptions/{id}',
  checkSubscription: 'POST /subscriptions/{id}/check',
  getSubscriptionResults: 'GET /subscriptions/{id}/results',
  getFeed: 'GET /feed',
  createFeedLink: 'POST /feed-links',
  listFeedLinks: 'GET /feed-links',
  deleteFeedLink: 'DELETE /feed-links/{id}',
  getReaderFeed: 'GET /feed/{file}',
  getReaderTranscript: 'GET /feed/{token}/{file}',
  searchLibrary: 'GET /library/search',
  listLibraryVideos: 'GET /library/videos',
  deleteLibraryVideo: 'DELETE /library/videos/{id}',
  deleteLibraryChannel: 'DELETE /library',
  createWebhook: 'POST /webhooks',
  listWebhooks: 'GET /webhooks',
  changeWebhook: 'PATCH /webhooks/{id}',
  deleteWebhook: 'DELETE /webhooks/{id}',
  rotateWebhook: 'POST /webhooks/{id}/rotate',
  testWebhook: 'POST /webhooks/{id}/test',
  replayWebhook: 'POST /webhooks/{id}/replay',
  retryWebhookDelivery: 'POST /webhooks/{id}/deliveries/{deliveryId}/retry',
  listWebhookDeliveries: 'GET /webhooks/{id}/deliveries',
  sendMcpMessage: 'POST /mcp',
  getResourceMetadata: 'GET /.well-known/oauth-protected-resource',
  getMcpResourceMetadata: 'GET /.well-known/oauth-protected-resource/mcp',
  createOrganization: 'POST /admin/organizations',
  listOrganizations: 'GET /admin/organizations',
  getOrganization: 'GET /admin/organizations/{id}',
  changeOrganization: 'PATCH /admin/organizations/{id}',
  deleteOrganization: 'DELETE /admin/organizations/{id}',
  issueKey: 'POST /admin/organizations/{id}/keys',
  listKeys: 'GET /admin/organizations/{id}/keys',
  rotateKey: 'POST /admin/keys/{id}/rotate',
  revokeKey: 'DELETE /admin/keys/{id}',
  unblockClient: 'POST /admin/keys/{id}/unblock',
  changeAdminClient: 'PATCH /admin/clients',
  getOrganizationUsage: 'GET /admin/organizations/{id}/usage',
  pruneUsage: 'POST /admin/usage/prune',
  getAllUsage: 'GET /admin/usage',
  cancelAnyJob: 'POST /admin/jobs/{id}/cancel',
  listAudit: 'GET /admin/audit',
  listOrganizationJobs: 'GET /admin/organizations/{id}/jobs',
  listOrganizationSubscriptions: 'GET /admin/organizations/{id}/subscriptions',
  listEgresses: 'GET /admin/egresses',
  getLive: 'GET /health/live',
  getReady: 'GET /health/ready',
  getMetrics: 'GET /metrics',
} as const satisfies Record<keyof operations, `${string} /${string}`>;

export type OperationId = keyof operations;

/** The reads that cost quota. */
const CHARGED: ReadonlySet<OperationId> = new Set([
  'getChannelTranscripts',
  'getPlaylistTranscripts',
  'getVideoTranscript',
]);

/** Whether a call may be sent again when nobody knows whether the first one had an effect. */
export function isSafeToRepeat(id: OperationId, headers: Headers): boolean {
  return (OPERATIONS[id].startsWith('GET ') && !CHARGED.has(id)) || headers.has('Idempotency-Key');
}

/** The parameters of an operation: `path`, `query`, `header` and `body`, as far as it has them. */
export type ParametersOf<Id extends OperationId> = Pick<operations[Id]['parameters'], 'path' | 'query' | 'header'> &
  RequestBodyOf<operations[Id]>;

type RequestBodyOf<Operation> = Operation extends { requestBody: { content: { 'application/json': infer Body } } }
  ? { body: Body }
  : { body?: unknown };

type Succeeded = 200 | 201 | 202 | 204;
type BodyOf<Response> = Response extends { content: { 'application/json': infer Body } }
  ? Body
  : Response extends { content: { 'text/plain': infer Text } }
    ? Text
    : undefined;

/** What an operation returns. */
export type ResultOf<Id extends OperationId> = BodyOf<
  operations[Id]['responses'][Extract<keyof operations[Id]['responses'], Succeeded>]
>;
