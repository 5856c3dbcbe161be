import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Archive jobs, their videos and their results. The tables are the truth: workers ask them for the next slice, and every
 * change of a job is one call of a function. What comes from the platform is stored as text, because `jsonb` refuses
 * characters that JSON can escape.
 */
export class CreateJobs1763683208000 implements MigrationInterface {
  readonly name = 'CreateJobs1763683208000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(JOBS);
    await queryRunner.query('CREATE SEQUENCE job_turns');
    await queryRunner.query('CREATE INDEX jobs_due ON jobs (next_run_at) WHERE next_run_at IS NOT NULL');
    await queryRunner.query('CREATE INDEX jobs_created ON jobs (organization_id, created_at, id)');
    await queryRunner.query('CREATE INDEX jobs_all_created ON jobs (created_at, id)');
    await queryRunner.query('CREATE INDEX jobs_turn ON jobs (organization_id, last_turn)');
    await queryRunner.query(
      'CREATE INDEX jobs_unfinished ON jobs (organization_id) WHERE finished_at IS NULL AND deleted_at IS NULL',
    );
    await queryRunner.query(`
      CREATE INDEX jobs_removable ON jobs (coalesce(deleted_at, expires_at))
        WHERE coalesce(deleted_at, expires_at) IS NOT NULL`);
    await queryRunner.query(JOB_VIDEOS);
    // The entries are deflated, so compressing them again only costs time.
    await queryRunner.query('ALTER TABLE job_videos ALTER COLUMN entry SET STORAGE EXTERNAL');
    await queryRunner.query(`CREATE INDEX job_videos_pending ON job_videos (job_id, position) WHERE state = 'pending'`);
    await queryRunner.query(STORE);
    await queryRunner.query(REFUSAL);
    await queryRunner.query(CREATE);
    await queryRunner.query(CANCEL);
    await queryRunner.query(RESUME);
    await queryRunner.query(DELETE);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const name of ['job_delete', 'job_resume', 'job_cancel', 'job_create', 'job_refusal', 'job_store'])
      await queryRunner.query(`DROP FUNCTION ${name}`);
    await queryRunner.query('DROP TABLE job_videos');
    await queryRunner.query('DROP TABLE jobs');
    await queryRunner.query('DROP SEQUENCE job_turns');
  }
}

// relisting: the list is read again, and no video of the job was met yet. last_turn orders the slices of all jobs, by a
// sequence because clocks step back. stored_claim is the claim of the last slice of videos that was stored.
const JOBS = `
  CREATE TABLE jobs (
    id text PRIMARY KEY,
    organization_id text NOT NULL REFERENCES organizations (id),
    key_id text NOT NULL REFERENCES api_keys (id),
    idempotency_key text,
    request_hash bytea NOT NULL,
    reference text NOT NULL,
    languages text[] NOT NULL,
    video_limit integer CHECK (video_limit > 0),
    since text,
    on_quota text NOT NULL CHECK (on_quota IN ('pause', 'fail')),
    state text NOT NULL DEFAULT 'queued'
      CHECK (state IN ('queued', 'listing', 'running', 'paused', 'completed', 'canceled', 'failed')),
    reason text,
    channel_id text,
    channel text,
    continuation text,
    relisting boolean NOT NULL DEFAULT false,
    listed_at timestamptz,
    total integer NOT NULL DEFAULT 0,
    succeeded integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    cached integer NOT NULL DEFAULT 0,
    fetched integer NOT NULL DEFAULT 0,
    stored_bytes bigint NOT NULL DEFAULT 0,
    setbacks integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    expires_at timestamptz,
    deleted_at timestamptz,
    next_run_at timestamptz,
    claim uuid,
    claimed_until timestamptz,
    stored_claim uuid,
    last_turn bigint,
    UNIQUE (organization_id, idempotency_key),
    CHECK (succeeded = cached + fetched AND succeeded + failed <= total),
    CHECK ((finished_at IS NULL) = (state NOT IN ('completed', 'canceled', 'failed'))),
    CHECK (next_run_at IS NULL OR (finished_at IS NULL AND deleted_at IS NULL))
  )`;

const JOB_VIDEOS = `
  CREATE TABLE job_videos (
    job_id text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    position integer NOT NULL CHECK (position > 0),
    video_id text NOT NULL,
    upload text NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'failed')),
    retries smallint NOT NULL DEFAULT 0,
    retry_at timestamptz,
    cached boolean,
    entry bytea,
    entry_bytes integer,
    entry_crc bigint,
    PRIMARY KEY (job_id, position),
    UNIQUE (job_id, video_id),
    CHECK ((state = 'pending') = (entry IS NULL)),
    CHECK ((state = 'succeeded') = (cached IS NOT NULL))
  )`;

// Writes a changed job. The end of a job, its resumption and the event for its webhooks follow from the change of its state.
const STORE = `
  CREATE FUNCTION job_store(p_old jobs, p_new jobs, p_results_seconds double precision) RETURNS jobs
  LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_job jobs := p_new;
  BEGIN
    IF v_job.state NOT IN ('completed', 'canceled', 'failed') THEN
      v_job.finished_at := NULL;
      v_job.expires_at := NULL;
    ELSIF p_old.finished_at IS NULL THEN
      v_job.finished_at := quota_now();
      v_job.expires_at := v_job.finished_at + make_interval(secs => p_results_seconds);
    END IF;
    IF v_job.finished_at IS NOT NULL THEN
      v_job.next_run_at := NULL;
    END IF;
    UPDATE jobs SET state = v_job.state, reason = v_job.reason, channel_id = v_job.channel_id, channel = v_job.channel,
        continuation = v_job.continuation, relisting = v_job.relisting, listed_at = v_job.listed_at, total = v_job.total,
        succeeded = v_job.succeeded, failed = v_job.failed, cached = v_job.cached, fetched = v_job.fetched,
        stored_bytes = v_job.stored_bytes, setbacks = v_job.setbacks, finished_at = v_job.finished_at,
        expires_at = v_job.expires_at, next_run_at = v_job.next_run_at, claim = v_job.claim,
        claimed_until = v_job.claimed_until, stored_claim = v_job.stored_claim
      WHERE id = v_job.id;
    IF v_job.state IN ('completed', 'failed', 'paused', 'canceled')
      AND (v_job.state, v_job.reason) IS DISTINCT FROM (p_old.state, p_old.reason) THEN
      PERFORM webhook_enqueue(v_job.organization_id, 'job.' || v_job.state, jsonb_build_object(
        'jobId', v_job.id, 'state', v_job.state, 'reason', v_job.reason, 'channelId', v_job.channel_id,
        'summary', jsonb_build_object(
          'total', v_job.total, 'succeeded', v_job.succeeded, 'failed', v_job.failed, 'cached', v_job.cached,
          'fetched', v_job.fetched, 'pending', v_job.total - v_job.succeeded - v_job.failed)));
    END IF;
    RETURN v_job;
  END $$`;

// Why an organization cannot have another unfinished job; null when it can. Its lock must be held. Results that have expired
// or were deleted do not count, although they are removed a little later.
const REFUSAL = `
  CREATE FUNCTION job_refusal(
    p_organization_id text, p_unfinished_max integer, p_stored_max integer, p_bytes_max double precision
  ) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN count(*) FILTER (WHERE finished_at IS NULL) >= p_unfinished_max THEN 'too_many'
                WHEN count(*) >= p_stored_max THEN 'too_many_stored'
                WHEN sum(stored_bytes) >= p_bytes_max THEN 'too_much_stored' END
      FROM jobs WHERE organization_id = p_organization_id AND deleted_at IS NULL
        AND (expires_at IS NULL OR expires_at > quota_now())
  $$`;

// Locks the organization first, as every function that also locks a job does. Returns no row for one that was deleted.
const CREATE = `
  CREATE FUNCTION job_create(
    p_id text, p_organization_id text, p_key_id text, p_idempotency_key text, p_request_hash bytea, p_reference text,
    p_languages text[], p_video_limit integer, p_since text, p_on_quota text, p_unfinished_max integer,
    p_stored_max integer, p_bytes_max double precision
  ) RETURNS TABLE (outcome text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_organization organizations := quota_lock(p_organization_id);
    v_now timestamptz;
  BEGIN
    IF v_organization.id IS NULL OR v_organization.deleted_at IS NOT NULL THEN
      RETURN;
    END IF;
    SELECT * INTO job FROM jobs WHERE organization_id = p_organization_id AND idempotency_key = p_idempotency_key;
    IF FOUND THEN
      outcome := CASE WHEN job.request_hash = p_request_hash THEN 'known' ELSE 'conflict' END;
      RETURN NEXT;
      RETURN;
    END IF;
    outcome := job_refusal(p_organization_id, p_unfinished_max, p_stored_max, p_bytes_max);
    IF outcome IS NULL THEN
      outcome := 'created';
      -- The cursor of a list has the milliseconds.
      v_now := date_trunc('milliseconds', quota_now());
      INSERT INTO jobs (id, organization_id, key_id, idempotency_key, request_hash, reference, languages, video_limit,
                        since, on_quota, created_at, next_run_at)
        VALUES (p_id, p_organization_id, p_key_id, p_idempotency_key, p_request_hash, p_reference, p_languages,
                p_video_limit, p_since, p_on_quota, v_now, v_now)
        RETURNING * INTO job;
    END IF;
    RETURN NEXT;
  END $$`;

// A running slice keeps its claim, so that what it fetches is stored and charged.
const CANCEL = `
  CREATE FUNCTION job_cancel(p_organization_id text, p_id text, p_results_seconds double precision)
  RETURNS TABLE (outcome text, old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_old jobs;
  BEGIN
    SELECT * INTO v_old FROM jobs WHERE id = p_id AND organization_id = p_organization_id AND deleted_at IS NULL
      FOR UPDATE;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    old_state := v_old.state;
    job := v_old;
    IF v_old.state = 'canceled' THEN
      outcome := 'unchanged';
    ELSIF v_old.finished_at IS NOT NULL THEN
      outcome := 'finished';
    ELSE
      outcome := 'changed';
      job.state := 'canceled';
      job.reason := NULL;
      job := job_store(v_old, job, p_results_seconds);
    END IF;
    RETURN NEXT;
  END $$`;

const RESUME = `
  CREATE FUNCTION job_resume(
    p_organization_id text, p_id text, p_unfinished_max integer, p_bytes_max double precision,
    p_results_seconds double precision
  ) RETURNS TABLE (outcome text, old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_old jobs;
  BEGIN
    PERFORM quota_lock(p_organization_id);
    SELECT * INTO v_old FROM jobs WHERE id = p_id AND organization_id = p_organization_id AND deleted_at IS NULL
      FOR UPDATE;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    old_state := v_old.state;
    job := v_old;
    IF v_old.state = 'completed' THEN
      outcome := 'finished';
    ELSIF v_old.expires_at <= quota_now() THEN
      outcome := 'expired';
    ELSIF v_old.state NOT IN ('paused', 'canceled', 'failed') THEN
      outcome := 'unchanged';
    ELSIF v_old.finished_at IS NOT NULL THEN
      outcome := job_refusal(p_organization_id, p_unfinished_max, NULL, p_bytes_max);
    END IF;
    IF outcome IS NULL THEN
      outcome := 'changed';
      job.state := CASE WHEN job.started_at IS NULL THEN 'queued' WHEN job.listed_at IS NULL THEN 'listing' ELSE 'running' END;
      job.reason := NULL;
      job.setbacks := 0;
      job.next_run_at := quota_now();
      job := job_store(v_old, job, p_results_seconds);
    END IF;
    RETURN NEXT;
  END $$`;

// The rows are removed later, in batches. An unfinished job is canceled without an event: its running slice keeps its claim,
// so that what it fetches is charged, and the job does not go on.
const DELETE = `
  CREATE FUNCTION job_delete(p_organization_id text, p_id text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    UPDATE jobs SET deleted_at = quota_now(), next_run_at = NULL, idempotency_key = NULL,
        state = CASE WHEN finished_at IS NULL THEN 'canceled' ELSE state END,
        finished_at = coalesce(finished_at, quota_now())
      WHERE id = p_id AND organization_id = p_organization_id AND deleted_at IS NULL;
    RETURN FOUND;
  END $$`;
