/*
 * Fills the tables. Rows are copies of rows that the service made itself, with other ids and times, so that a new
 * column has a value of the service's.
 */

const MONTHS = 24;
/** Fewer than after which deliveries that succeeded are removed. */
const DAYS_OF_DELIVERIES = 6;
const DUE_JOBS_PER_ORGANIZATION = 20;
const VIDEOS_PER_DUE_JOB = 3;
const VIDEOS_PER_FINISHED_JOB = 100;
const UPLOADS_PER_SOURCE = 20;
/** Finished jobs of the big organization, whose lists are read, at every size. */
const FINISHED_JOBS_OF_BIG = 300;

/** Their foreign keys are not checked: ten million checks take minutes. */
const UNCHECKED = new Set(['quota_reservations', 'job_videos', 'source_uploads', 'webhook_deliveries']);

/** The finished job with the most results. */
export const BIG_JOB_ID = `job_f${'1'.padStart(21, '0')}`;

/**
 * The tables of a service of some size. One organization has two fifths of the calls and deliveries, the others share the
 * rest. The newest calls come first, so a smaller share of the rows is a shorter history at the same rate.
 */
export class Filling {
  #client;
  #sizes;
  #big;
  /** The conditions of the rows that are copied, by table. */
  #samples;
  #columns = new Map();
  #share = 0;

  /**
   * @param client a connection of a superuser
   * @param {{ organizationId: string, keyId: string, webhookId: string, jobId: string, sourceId: string }} big rows of the service
   * @param {{ reservations: number, dueSlices: number, deliveries: number, jobEntries: number,
   *   logEntries: number, auditEntries: number, sources: number, uploadsOfOne: number }} sizes of the whole
   */
  constructor(client, big, sizes) {
    this.#client = client;
    this.#sizes = sizes;
    this.#big = big;
    this.#samples = {
      organizations: `id = '${big.organizationId}'`,
      api_keys: `id = '${big.keyId}'`,
      webhooks: `id = '${big.webhookId}'`,
      quota_reservations: `organization_id = '${big.organizationId}' AND charged > 0`,
      jobs: `id = '${big.jobId}'`,
      sources: 'checked_at IS NOT NULL',
      source_uploads: `source_id = '${big.sourceId}'`,
      job_videos: `job_id = '${big.jobId}' AND state = 'succeeded'`,
      webhook_deliveries: `webhook_id = '${big.webhookId}' AND state = 'succeeded'`,
      audit_entries: `organization_id = '${big.organizationId}'`,
      log_entries: `organization_id = '${big.organizationId}'`,
    };
  }

  /** Fills up to a share of the sizes. */
  async upTo(share) {
    const before = this.#share;
    this.#share = share;
    const added = (count) => series(Math.round(before * count) + 1, Math.round(share * count));
    await this.#organizations(added);
    await this.#calls(added);
    await this.#jobs(added, before === 0);
    await this.#sources(added);
    await this.#deliveries(added);
    await this.#log(added);
    await this.#copy('audit_entries', added(this.#sizes.auditEntries), {
      at: ago(MONTHS * 30.4, this.#sizes.auditEntries),
    });
  }

  get #organizationsMax() {
    return Math.ceil(this.#sizes.dueSlices / DUE_JOBS_PER_ORGANIZATION);
  }

  /** The number of the small organization whose turn row `n` is. */
  get #turn() {
    return `(1 + n / 5 % ${Math.max(1, Math.round(this.#share * this.#organizationsMax))})`;
  }

  /** Whose row `n` is. */
  #owner(big, other) {
    return `CASE WHEN n % 5 < 2 THEN '${big}' ELSE ${other(this.#turn)} END`;
  }

  async #organizations(added) {
    const from = added(this.#organizationsMax);
    await this.#copy('organizations', from, { id: organization('n'), name: organization('n') });
    await this.#copy('api_keys', from, {
      id: key('n'),
      organization_id: organization('n'),
      hash: 'sha256(n::text::bytea)',
    });
    // No event of the service's is for these.
    const events = `ARRAY['job.failed']`;
    await this.#copy('webhooks', from, {
      id: webhook('n'),
      organization_id: organization('n'),
      events,
      due_at: 'NULL',
    });
  }

  async #calls(added) {
    const { organizationId, keyId } = this.#big;
    await this.#copy('quota_reservations', added(this.#sizes.reservations), {
      id: `uuidv7(${ago(MONTHS * 30.4, this.#sizes.reservations)} - now())`,
      organization_id: this.#owner(organizationId, organization),
      key_id: this.#owner(keyId, key),
      ...timesOfCall(ago(MONTHS * 30.4, this.#sizes.reservations)),
    });
  }

  async #jobs(added, isFirst) {
    const due = added(this.#sizes.dueSlices);
    const owner = `(1 + (n - 1) / ${DUE_JOBS_PER_ORGANIZATION})`;
    // Every second one has read its list. Some were run by processes that were killed.
    const [isListed, isClaimed] = ['n % 2 = 0', 'n % 50 = 0'];
    await this.#copy('jobs', due, {
      id: job('d', 'n'),
      organization_id: organization(owner),
      key_id: key(owner),
      state: `CASE WHEN ${isListed} THEN 'running' ELSE 'queued' END`,
      listed_at: when(isListed, 'sample.listed_at'),
      started_at: when(isListed, 'sample.started_at'),
      total: `CASE WHEN ${isListed} THEN ${VIDEOS_PER_DUE_JOB} ELSE 0 END`,
      last_position: `CASE WHEN ${isListed} THEN ${VIDEOS_PER_DUE_JOB} ELSE 0 END`,
      stored_bytes: 0,
      succeeded: 0,
      failed: 0,
      cached: 0,
      fetched: 0,
      finished_at: 'NULL',
      expires_at: 'NULL',
      remove_at: 'NULL',
      next_run_at: ago(1, 86_400_000),
      claim: when(isClaimed, 'gen_random_uuid()'),
      claimed_until: when(isClaimed, `now() - interval '1 hour'`),
    });
    await this.#copy('job_videos', videosOf(`${due} WHERE ${isListed}`, VIDEOS_PER_DUE_JOB), {
      ...video('d'),
      state: `'pending'`,
      sequence: 'NULL',
      decided_at: 'NULL',
      cached: 'NULL',
      entry: 'NULL',
      entry_bytes: 'NULL',
      entry_crc: 'NULL',
    });
    const ofBig = series(1, FINISHED_JOBS_OF_BIG);
    const finished = added(this.#sizes.jobEntries / VIDEOS_PER_FINISHED_JOB);
    const isOfBig = `n <= ${FINISHED_JOBS_OF_BIG}`;
    await this.#copy('jobs', isFirst ? `${finished} UNION ${ofBig}` : `${finished} EXCEPT ${ofBig}`, {
      id: job('f', 'n'),
      organization_id: `CASE WHEN ${isOfBig} THEN sample.organization_id ELSE ${organization(this.#turn)} END`,
      ...counts(VIDEOS_PER_FINISHED_JOB),
      created_at: `date_trunc('milliseconds', now() - n * interval '1 minute')`,
      ...expiring(`now() + interval '1 day'`),
    });
    await this.#copy('job_videos', videosOf(finished, VIDEOS_PER_FINISHED_JOB), video('f'));
    // Their results are removed, and they a week later.
    await this.#copy('jobs', added(this.#sizes.dueSlices / 2), {
      id: job('x', 'n'),
      organization_id: organization(this.#turn),
      expires_at: `now() - interval '3 days'`,
      remove_at: `now() + interval '4 days'`,
      stored_bytes: 0,
    });
  }

  /** Sources that are checked later. The one of the big organization has a long history and many other followers. */
  async #sources(added) {
    const sources = added(this.#sizes.sources);
    await this.#copy('sources', sources, { id: source('n'), next_check_at: `now() + interval '1 day'` });
    const seen = { position: 'place', first_position: 'place', state: `'seen'`, upload: 'NULL', rank: 'NULL' };
    const upload = { ...seen, video_id: `'video' || place` };
    await this.#copy('source_uploads', videosOf(sources, UPLOADS_PER_SOURCE), { ...upload, source_id: source('n') });
    const older = { ...seen, position: '-n', first_position: '-n', video_id: `'older' || n` };
    await this.#copy('source_uploads', added(this.#sizes.uploadsOfOne), older);
    const finished = this.#samples.jobs;
    this.#samples.jobs = `source_id = '${this.#big.sourceId}'`;
    await this.#copy('jobs', sources, {
      id: `'sub_' || lpad(n::text, 22, '0')`,
      organization_id: organization(this.#turn),
      state: `'paused'`,
      reason: `'paused_by_caller'`,
      next_run_at: 'NULL',
      stored_bytes: 0,
      ...counts(0),
    });
    this.#samples.jobs = finished;
  }

  async #deliveries(added) {
    await this.#copy('webhook_deliveries', added(this.#sizes.deliveries), {
      ...delivery(`n::text`),
      webhook_id: this.#owner(this.#big.webhookId, webhook),
      created_at: ago(DAYS_OF_DELIVERIES, this.#sizes.deliveries),
    });
  }

  /** The log of the big organization, which its feed and replays read. */
  async #log(added) {
    await this.#copy('log_entries', added(this.#sizes.logEntries), {
      sequence:
        '(SELECT last_sequence FROM organization_logs log WHERE log.organization_id = sample.organization_id) + n',
      event: `jsonb_set(sample.event, '{videoId}', to_jsonb('logged' || n))`,
    });
    await this.#client.query(
      `UPDATE organization_logs log SET last_sequence = (SELECT max(sequence) FROM log_entries WHERE organization_id = log.organization_id)`,
    );
  }

  /** Adds what the housekeeping finds, and other processes after one was killed: as much each time. */
  async addLeftovers() {
    const name = `${this.#share * 10}x`;
    const pastRetention = `now() - interval '${MONTHS + 2} months'`;
    const id = 'gen_random_uuid()';
    await this.#copy('quota_reservations', series(1, 2), { id, ...timesOfCall(pastRetention) });
    await this.#copy('quota_reservations', series(1, 2), {
      id,
      ...timesOfCall('now()'),
      settled_at: 'NULL',
      fetched: 'NULL',
      leased_until: `now() - interval '1 minute'`,
    });
    await this.#client.query(`
      INSERT INTO quota_open_reservations
        SELECT organization_id, id, period_start, required, leased_until FROM quota_reservations WHERE settled_at IS NULL
        ON CONFLICT DO NOTHING`);
    await this.#client.query(`
      INSERT INTO quota_periods (organization_id, period_start, used)
        SELECT organization_id, period_start, sum(charged) FROM quota_reservations
          WHERE settled_at IS NOT NULL GROUP BY 1, 2
        ON CONFLICT (organization_id, period_start) DO UPDATE SET used = excluded.used`);
    await this.#copy('webhook_deliveries', series(1, 5), {
      ...delivery(`'old ${name}' || n`),
      created_at: `now() - interval '40 days'`,
    });
    await this.#copy('webhook_deliveries', series(1, 20), {
      ...delivery(`'due ${name}' || n`),
      state: `'pending'`,
      next_attempt_at: 'now()',
      attempts: 0,
      last_attempt_at: 'NULL',
      response_status: 'NULL',
      duration_ms: 'NULL',
    });
    await this.#client.query('UPDATE webhooks SET due_at = now() WHERE id = $1', [this.#big.webhookId]);
    const expired = expiring(`now() - interval '10 days'`);
    await this.#copy('jobs', series(1, 2), { id: job(`e${name}`, 'n'), ...expired, ...counts(2) });
    await this.#copy('job_videos', videosOf(series(1, 2), 2), video(`e${name}`));
    await this.#copy('audit_entries', series(1, 2), { at: pastRetention });
    await this.#client.query('VACUUM (ANALYZE)');
  }

  /**
   * Copies the sample of a table.
   *
   * @param from a query for the `n` of each copy
   * @param values of the columns that differ, as SQL
   */
  async #copy(table, from, values) {
    const columns = await this.#columnsOf(table);
    await this.#client.query(`SET session_replication_role = ${UNCHECKED.has(table) ? 'replica' : 'origin'}`);
    await this.#client.query(
      `INSERT INTO ${table} (${columns.join(', ')})
         SELECT ${columns.map((name) => values[name] ?? `sample.${name}`).join(', ')}
           FROM (SELECT * FROM ${table} WHERE ${this.#samples[table]} LIMIT 1) AS sample, (${from}) AS series`,
    );
  }

  async #columnsOf(table) {
    const known = this.#columns.get(table);
    if (known) return known;
    const { rows } = await this.#client.query(
      `SELECT column_name AS name FROM information_schema.columns
         WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER' AND is_identity = 'NO'`,
      [table],
    );
    const names = rows.map(({ name }) => name);
    this.#columns.set(table, names);
    return names;
  }
}

// What follows is SQL; `n` is the number of a copy.

const organization = (n) => `'bench_' || ${n}`;
const key = (n) => `'key_' || ${n}`;
const webhook = (n) => `'whk_' || lpad(${n}::text, 24, '0')`;
const delivery = (name) => ({ id: `'dlv_' || md5(${name})`, event_id: `'msg_' || md5(${name})` });
const source = (n) => `'UC' || lpad(${n}::text, 22, '0')`;
const job = (kind, n) => `'job_${kind}' || lpad(${n}::text, ${22 - kind.length}, '0')`;
const video = (kind) => ({
  job_id: job(kind, 'n'),
  position: 'place',
  sequence: 'place',
  video_id: `'video' || place`,
});
const when = (condition, value) => `CASE WHEN ${condition} THEN ${value} END`;
const counts = (videos) => ({
  ...{ total: videos, succeeded: videos, fetched: videos, cached: 0, failed: 0 },
  ...{ last_position: videos },
});
const expiring = (at) => ({ expires_at: at, remove_at: at });
/** The oldest copy first, as a service writes them. */
const series = (from, to) => `SELECT n FROM generate_series(${to}, ${from}, -1) AS n`;
const videosOf = (jobs, videos) => `SELECT n, place FROM (${jobs}) AS jobs, generate_series(1, ${videos}) AS place`;

/** The time of copy `n` of some that are spread over the last days. */
const ago = (days, copies) => `now() - n * interval '${(days * 86_400) / copies} seconds'`;

const timesOfCall = (at) => ({
  period_start: `date_trunc('month', (${at}) AT TIME ZONE 'UTC')::date`,
  created_at: at,
  leased_until: `${at} + interval '1 minute'`,
  settled_at: `${at} + interval '10 seconds'`,
});
