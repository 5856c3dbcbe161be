import { defined, Http, itemsOf, pause, type CallOptions, type ClientOptions } from './http.js';
import type { Job } from './jobs.js';
import type { ParametersOf, ResultOf } from './operations.js';
import type { components } from './schema.js';
import type { Subscription } from './subscriptions.js';

type Schemas = components['schemas'];
export type Organization = Schemas['Organization'];
export type Key = Schemas['Key'];
export type AuditEntry = Schemas['AuditEntry'];

export interface AdminOptions extends Omit<ClientOptions, 'apiKey'> {
  /** `ADMIN_TOKEN` of the service. Without it, `token` returns tokens of an administrator. */
  adminToken?: string;
}

export interface AuditOptions extends CallOptions {
  /** Only the changes that concern this organization. */
  organization?: string;
}

export interface UsageRangeOptions extends CallOptions {
  /** The first day, `2026-10-01`. */
  from?: string;
  /** The day after the last one. */
  to?: string;
}

export interface PruneOptions extends CallOptions {
  /** The `next` of the step before. */
  after?: string;
}

/** The operations of an operator. Every method throws ChannelTranscriptsError. */
export class AdminClient {
  private readonly http: Http;

  constructor({ adminToken, ...options }: AdminOptions) {
    this.http = new Http({ ...options, ...(adminToken !== undefined && { apiKey: adminToken }) }, pause);
  }

  createOrganization(body: ParametersOf<'createOrganization'>['body'], options?: CallOptions): Promise<Organization> {
    return this.http.call('createOrganization', { body }, options);
  }

  /** Yields all organizations. */
  organizations(options?: CallOptions): AsyncGenerator<Organization, void, undefined> {
    return itemsOf<Organization, string>(async (after) => {
      const page = await this.http.call('listOrganizations', { query: defined({ after }) }, options);
      return [page.organizations, page.next];
    });
  }

  organization(id: string, options?: CallOptions): Promise<Organization> {
    return this.http.call('getOrganization', { path: { id } }, options);
  }

  changeOrganization(
    id: string,
    body: ParametersOf<'changeOrganization'>['body'],
    options?: CallOptions,
  ): Promise<Organization> {
    return this.http.call('changeOrganization', { path: { id }, body }, options);
  }

  deleteOrganization(id: string, options?: CallOptions): Promise<ResultOf<'deleteOrganization'>> {
    return this.http.call('deleteOrganization', { path: { id } }, options);
  }

  /** Issues an API key, which is returned only now. */
  issueKey(
    organizationId: string,
    body: ParametersOf<'issueKey'>['body'],
    options?: CallOptions,
  ): Promise<ResultOf<'issueKey'>> {
    return this.http.call('issueKey', { path: { id: organizationId }, body }, options);
  }

  /** Yields the keys of an organization. */
  keys(organizationId: string, options?: CallOptions): AsyncGenerator<Key, void, undefined> {
    return itemsOf<Key, string>(async (after) => {
      const parameters = { path: { id: organizationId }, query: defined({ after }) };
      const { keys, next } = await this.http.call('listKeys', parameters, options);
      return [keys, next];
    });
  }

  /** Issues a key in place of another, which stays valid for a while. */
  rotateKey(
    keyId: string,
    body: ParametersOf<'rotateKey'>['body'],
    options?: CallOptions,
  ): Promise<ResultOf<'rotateKey'>> {
    return this.http.call('rotateKey', { path: { id: keyId }, body }, options);
  }

  revokeKey(keyId: string, options?: CallOptions): Promise<ResultOf<'revokeKey'>> {
    return this.http.call('revokeKey', { path: { id: keyId } }, options);
  }

  /** Accepts the calls of a client of the identity provider again, after `revokeKey` has blocked it. */
  unblockClient(keyId: string, options?: CallOptions): Promise<Key> {
    return this.http.call('unblockClient', { path: { id: keyId }, body: {} }, options);
  }

  /** Blocks a client under `/admin` by its ID, or lets it in again. */
  changeAdminClient(
    body: ParametersOf<'changeAdminClient'>['body'],
    options?: CallOptions,
  ): Promise<ResultOf<'changeAdminClient'>> {
    return this.http.call('changeAdminClient', { body }, options);
  }

  /** Yields the archive jobs of an organization, newest first. */
  jobs(organizationId: string, options?: CallOptions): AsyncGenerator<Job, void, undefined> {
    return itemsOf<Job, string>(async (after) => {
      const parameters = { path: { id: organizationId }, query: defined({ after }) };
      const { jobs, next } = await this.http.call('listOrganizationJobs', parameters, options);
      return [jobs, next];
    });
  }

  /** Yields the subscriptions of an organization, newest first. */
  subscriptions(organizationId: string, options?: CallOptions): AsyncGenerator<Subscription, void, undefined> {
    return itemsOf<Subscription, string>(async (after) => {
      const parameters = { path: { id: organizationId }, query: defined({ after }) };
      const { subscriptions, next } = await this.http.call('listOrganizationSubscriptions', parameters, options);
      return [subscriptions, next];
    });
  }

  /** Returns how the process that responds reaches YouTube. */
  egresses(options?: CallOptions): Promise<ResultOf<'listEgresses'>> {
    return this.http.call('listEgresses', {}, options);
  }

  /** Returns the usage of an organization; with `by`, the sums to bill from. */
  usage(
    organizationId: string,
    query?: ParametersOf<'getOrganizationUsage'>['query'],
    options?: CallOptions,
  ): Promise<ResultOf<'getOrganizationUsage'>> {
    return this.http.call('getOrganizationUsage', { path: { id: organizationId }, ...(query && { query }) }, options);
  }

  /** Returns the usage of all organizations in a range of days, by default this month. */
  usageOfAll({ from, to, ...options }: UsageRangeOptions = {}): Promise<ResultOf<'getAllUsage'>> {
    return this.http.call('getAllUsage', { query: defined({ from, to }) }, options);
  }

  /** Deletes what is older than the service keeps, in steps: repeat it with `after` set to `next` until that is null. */
  pruneUsage({ after, ...options }: PruneOptions = {}): Promise<ResultOf<'pruneUsage'>> {
    return this.http.call('pruneUsage', { query: defined({ after }), body: {} }, options);
  }

  /** Cancels a job of any organization. */
  cancelJob(id: string, options?: CallOptions): Promise<ResultOf<'cancelAnyJob'>> {
    return this.http.call('cancelAnyJob', { path: { id }, body: {} }, options);
  }

  /** Yields the recorded changes, newest first. */
  audit({ organization, ...options }: AuditOptions = {}): AsyncGenerator<AuditEntry, void, undefined> {
    type Position = NonNullable<ResultOf<'listAudit'>['next']>;
    return itemsOf<AuditEntry, Position>(async (after) => {
      const page = await this.http.call('listAudit', { query: defined({ organization, after }) }, options);
      return [page.entries, page.next];
    });
  }
}
