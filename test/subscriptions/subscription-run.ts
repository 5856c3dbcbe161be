import { randomUUID } from 'node:crypto';
import { inflateRawSync, constants } from 'node:zlib';
import type { SliceSteps } from '../jobs/slice-steps.js';
import type { TestOrganization, TestService } from '../harness/service.js';

interface SubscriptionOptions {
  start?: number | string;
  kinds?: string[];
  languages?: string[];
  checkMinutes?: number;
  organization?: TestOrganization;
  resultsSeconds?: number;
  playlist?: string;
}

export interface FeedEntry {
  videoId: string;
  ok: boolean;
  metadata: { title: string };
  error?: { code: string };
}

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** A subscription of a test, as the database has it. */
export class SubscriptionRun {
  private constructor(
    private readonly service: TestService,
    readonly organization: TestOrganization,
    readonly id: string,
  ) {}

  static async create(
    { service }: SliceSteps,
    channel: string,
    {
      start = 'now',
      kinds = [],
      languages = [],
      checkMinutes = 60,
      resultsSeconds = 604_800,
      playlist,
      ...others
    }: SubscriptionOptions = {},
  ): Promise<SubscriptionRun> {
    const organization = others.organization ?? (await service.organization());
    const id = `sub_${randomUUID().replaceAll('-', '').slice(0, 22)}`;
    const request = {
      channel: playlist === undefined ? channel : null,
      playlist,
      languages,
      match: 'all',
      kinds,
      include: [],
      chunkSeconds: null,
      checkMinutes,
      start,
    };
    const subscription = {
      ...{ id, organization_id: organization.id, key_id: organization.keyId, request: JSON.stringify(request) },
      ...{ check_seconds: checkMinutes * 60, results_seconds: resultsSeconds, source_id: playlist ?? channel },
    };
    await service.query(`SELECT job_create(${text(JSON.stringify(subscription))}, 1000, NULL, 1e12)`);
    return new SubscriptionRun(service, organization, id);
  }

  /** The row with its counts. */
  async row(): Promise<Record<string, unknown>> {
    const [row] = await this.service
      .query(`SELECT jobs.*, seen_position, next_check_at, next_check_at > clock_now() AS is_checked,
      coalesce(jobs.reason, sources.reason) AS reason, total - succeeded - failed AS pending,
      extract(epoch FROM next_check_at - clock_now())::int AS check_in,
      extract(epoch FROM next_run_at - clock_now())::int AS run_in
      FROM jobs LEFT JOIN sources ON sources.id = source_id WHERE jobs.id = '${this.id}'`);
    if (!row) throw new Error('The subscription does not exist.');
    return row;
  }

  /** Makes a check due now, so that it reads the channel anew. */
  async dueNow(): Promise<void> {
    await this.service.query(`SELECT subscription_check('${this.organization.id}', '${this.id}', 0)`);
  }

  /** As the caller changes it; the check of one that goes on is due at once. */
  async change(state: 'running' | 'paused' | null, checkSeconds: number | null = null): Promise<void> {
    const values = `${checkSeconds ?? 'NULL'}, ${state === null ? 'NULL' : text(state)}`;
    await this.service.query(`SELECT subscription_change('${this.organization.id}', '${this.id}', ${values}, 0, NULL)`);
  }

  /** The entries that are stored, in the order of the feed. */
  async feed(after = 0): Promise<FeedEntry[]> {
    const rows = await this.service.query(
      `SELECT sequence, entry FROM job_videos WHERE job_id = '${this.id}' AND sequence > ${after} ORDER BY sequence`,
    );
    return rows.map(({ entry }) => {
      const json = inflateRawSync(entry as Buffer, { finishFlush: constants.Z_SYNC_FLUSH });
      return JSON.parse(json.toString('utf8')) as FeedEntry;
    });
  }

  async feedIds(): Promise<string[]> {
    return (await this.feed()).map(({ videoId }) => videoId);
  }

  async pendingIds(): Promise<unknown[]> {
    const rows = await this.service.query(
      `SELECT video_id FROM job_videos WHERE job_id = '${this.id}' AND state = 'pending' ORDER BY position`,
    );
    return rows.map(({ video_id }) => video_id);
  }

  /** The events of the organization, which has a webhook, in their order. */
  async events(): Promise<{ type: string; data: Record<string, unknown> }[]> {
    return (await this.service.query(`SELECT type, data FROM webhook_deliveries delivery
      JOIN webhooks ON webhooks.id = webhook_id AND organization_id = '${this.organization.id}'
      ORDER BY (data->>'results' IS NULL), data->>'results' COLLATE "C"`)) as never;
  }

  async withWebhook(): Promise<this> {
    await this.service.query(`INSERT INTO webhooks (id, organization_id, url, secret, created_at)
      VALUES ('whk_${this.id}', '${this.organization.id}', 'http://127.0.0.1:9/', '', clock_now())`);
    return this;
  }

  /** What was charged for it. */
  async charged(): Promise<unknown> {
    const [row] = await this.service.query(
      `SELECT coalesce(sum(charged), 0)::int AS charged FROM quota_reservations WHERE request_id = '${this.id}'`,
    );
    return row?.['charged'];
  }
}
