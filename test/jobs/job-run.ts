import { deepEqual, equal } from 'node:assert/strict';
import { inflateRawSync, constants } from 'node:zlib';
import type { JobDto as Job } from '../../src/jobs/dto/job.dto.js';
import type { WantedJob } from '../../src/jobs/job-request.js';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { QuotaService } from '../../src/quota/quota.service.js';
import type { TestOrganization, TestService } from '../harness/service.js';
import { waitForJob } from './job-requests.js';

/** An entry as the results have it. */
export interface EntryJson {
  position: number;
  videoId: string;
  ok: boolean;
  metadata: { title: string; channel?: unknown };
  transcript: Record<string, unknown>;
  cached: boolean;
  error?: { code: string; message: string; retryable: boolean };
}

/** A job of a test, and what the test does with it. */
export class JobRun {
  private constructor(
    private readonly service: TestService,
    readonly organization: TestOrganization,
    readonly id: string,
  ) {}

  /** @param source a channel, or another source with the rest of the request */
  static async create(
    service: TestService,
    organization: TestOrganization,
    source: string | WantedJob,
    request: WantedJob = {},
  ): Promise<JobRun> {
    const payer = { organizationId: organization.id, keyId: organization.keyId, requestId: 'test' };
    const { id } = await service.app
      .get(JobsService)
      .create({ ...(typeof source === 'string' ? { channel: source } : source), ...request }, payer);
    return new JobRun(service, organization, id);
  }

  get(): Promise<Job> {
    return this.jobs.get(this.organization.id, this.id);
  }

  async cancel(): Promise<Job> {
    return (await this.jobs.cancel(this.organization.id, this.id)).job;
  }

  resume(): Promise<Job> {
    return this.jobs.resume(this.organization.id, this.id);
  }

  delete(): Promise<void> {
    return this.jobs.delete(this.organization.id, this.id);
  }

  /** The IDs of the listed videos, in the channel's order. */
  async videoIds(): Promise<string[]> {
    const statement = `SELECT video_id FROM job_videos WHERE job_id = '${this.id}' ORDER BY position`;
    return (await this.service.query(statement)).map((row) => String(row['video_id']));
  }

  untilCompleted(): Promise<Job> {
    return waitForJob(this.service, this.organization.key, this.id);
  }

  /** All entries that can be read, in their order. */
  async entries(limit = 100): Promise<{ position: number; entry: EntryJson }[]> {
    const entries: { position: number; entry: EntryJson }[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.jobs.results(this.organization.id, this.id, { limit, after });
      for (const { facts, text } of page.entries) {
        const json = inflateRawSync(text.deflated, { finishFlush: constants.Z_SYNC_FLUSH });
        equal(json.length, text.jsonBytes);
        entries.push({ position: facts.position ?? 0, entry: JSON.parse(json.toString('utf8')) as EntryJson });
      }
      if (!page.hasMore) return entries;
      after = page.next;
    }
  }

  /**
   * Checks that the counts of the job agree with each other, with its entries and with the settled reservations, that every
   * decided video has one entry, and that the usage of the organization is exact.
   */
  async verify(): Promise<Job> {
    const job = await this.get();
    const { total, succeeded, failed, cached, fetched, pending } = job.summary;
    equal(total, succeeded + failed + pending);
    equal(succeeded, cached + fetched);
    const [row] = await this.service.query(`
      SELECT count(*) FILTER (WHERE state = 'succeeded')::int AS succeeded,
             count(*) FILTER (WHERE state = 'failed')::int AS failed,
             count(*) FILTER (WHERE state = 'pending')::int AS pending,
             count(*) FILTER (WHERE cached)::int AS cached, count(DISTINCT video_id)::int AS total,
             coalesce(sum(octet_length(entry)), 0)::int AS bytes,
             (SELECT stored_bytes::int FROM jobs WHERE id = '${this.id}') AS stored,
             (SELECT coalesce(sum(charged), 0)::int FROM quota_reservations WHERE request_id = '${this.id}') AS charged,
             (SELECT coalesce(sum(forfeited), 0)::int FROM quota_reservations WHERE request_id = '${this.id}') AS forfeited
        FROM job_videos WHERE job_id = '${this.id}'`);
    const bytes = row?.['bytes'];
    const counts = { succeeded, failed, pending, cached, total, charged: fetched };
    deepEqual(row, { ...counts, bytes, stored: bytes, forfeited: 0 });
    const { exact } = await this.service.app.get(QuotaService).verify(this.organization.id);
    equal(exact, true);
    return job;
  }

  private get jobs(): JobsService {
    return this.service.app.get(JobsService);
  }
}
