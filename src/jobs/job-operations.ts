import { randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { Environment } from '../config/environment.js';
import { bytesToBase62 } from '../domain/base62.js';
import { toPage, type Page, type PageRequest } from '../domain/page.js';
import type { Payer } from '../quota/quota.service.js';
import { JOB_VARIANTS, type JobVariant } from './job-variants.js';
import type { Created, JobTable, Refusal } from './job-table.js';
import type { JobWorker } from './job-worker.js';
import { IdempotencyConflictError, parseCursor, STORED_JOBS_MAX, StoredResultsLimitError, toCursor } from './job.js';

/** The operations that archive jobs and subscriptions have in common. */
export abstract class JobOperations<Dto extends { id: string; createdAt: string }> {
  protected abstract readonly variant: JobVariant;
  private readonly logger = new Logger(this.constructor.name);

  constructor(
    protected readonly store: JobTable<Dto>,
    protected readonly worker: JobWorker,
    protected readonly environment: Environment,
  ) {}

  /** Returns the job or subscription. @throws JobNotFoundError | SubscriptionNotFoundError */
  get(organizationId: string, id: string): Promise<Dto> {
    return this.found(id, () => this.store.find(organizationId, id));
  }

  /** Deletes it and its results. What its running slice fetches is charged. @throws JobNotFoundError | SubscriptionNotFoundError */
  async delete(organizationId: string, id: string): Promise<void> {
    await this.found(id, () => this.store.delete(organizationId, id));
    const { log } = JOB_VARIANTS[this.variant];
    this.logger.log({ event: log.deleted, [log.id]: id, organizationId });
  }

  /** The error when the organization has the maximum number of them. */
  protected abstract tooMany(): Error;

  /**
   * Creates one with a new ID, or finds the one with the same idempotency key.
   *
   * @param facts what the line of the log has in addition
   */
  protected async add(payer: Payer, create: (id: string) => Promise<Created<Dto>>, facts?: object): Promise<Dto> {
    const { prefix, log } = JOB_VARIANTS[this.variant];
    const id = `${prefix}_${bytesToBase62(randomBytes(16))}`;
    const created = await create(id);
    if (created.outcome !== 'created' && created.outcome !== 'known') throw this.refused(created.outcome);
    if (created.outcome === 'created') {
      this.logger.log({ event: log.created, [log.id]: id, ...payer, ...facts });
      this.worker.wake();
    }
    return created.job;
  }

  protected refused(refusal: Refusal): Error {
    if (refusal === 'conflict') return new IdempotencyConflictError();
    if (refusal === 'too_many') return this.tooMany();
    const megabytes = this.environment.JOB_RESULTS_MAX_MEGABYTES;
    return new StoredResultsLimitError(refusal === 'too_many_stored' ? { jobs: STORED_JOBS_MAX } : { megabytes });
  }

  /** A page of the list, newest first. @throws UnknownCursorError */
  protected async page(organizationId: string, { limit, after }: PageRequest): Promise<Page<Dto>> {
    const place = after == null ? undefined : parseCursor(after, JOB_VARIANTS[this.variant].idForm);
    return toPage(await this.store.list(organizationId, limit + 1, place), limit, toCursor);
  }

  /** What a statement returns for an ID; only the form of an ID is looked up. @throws JobNotFoundError | SubscriptionNotFoundError */
  protected async found<T>(id: string, lookUp: () => Promise<T | undefined>): Promise<T> {
    const { idForm, NotFound } = JOB_VARIANTS[this.variant];
    const result = idForm.test(id) ? await lookUp() : undefined;
    if (result === undefined) throw new NotFound();
    return result;
  }
}
