import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The slices of archive jobs: who runs which, and what one changes. A slice is claimed, and its results are stored only
 * while its claim holds, in the transaction that settles its reservations. So a process can be killed at any point: what
 * was fetched is stored and charged together, or neither.
 */
export class CreateJobSlices1763683209000 implements MigrationInterface {
  readonly name = 'CreateJobSlices1763683209000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(CLAIM);
    await queryRunner.query(COMMIT_PAGE);
    await queryRunner.query(COMMIT_SLICE);
    await queryRunner.query(SWEEP);
    await queryRunner.query(REMOVE_BATCH);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const name of ['job_remove_batch', 'job_sweep', 'job_commit_slice', 'job_commit_page', 'job_claim'])
      await queryRunner.query(`DROP FUNCTION ${name}`);
  }
}

// Organizations take turns: the next slice is one of the organization whose last slice is the longest ago. A claim that has
// expired is that of a process that was killed, which counts as a setback.
const CLAIM = `
  CREATE FUNCTION job_claim(p_claim uuid, p_lease_seconds double precision)
  RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_now timestamptz := quota_now();
    v_due jobs;
  BEGIN
    SELECT * INTO v_due FROM jobs due
      WHERE due.next_run_at <= v_now AND (due.claim IS NULL OR due.claimed_until <= v_now)
      ORDER BY (SELECT max(turn.last_turn) FROM jobs turn WHERE turn.organization_id = due.organization_id) NULLS FIRST,
               due.last_turn NULLS FIRST, due.created_at, due.id
      LIMIT 1 FOR UPDATE OF due SKIP LOCKED;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    old_state := v_due.state;
    UPDATE jobs SET claim = p_claim, claimed_until = v_now + make_interval(secs => p_lease_seconds),
        last_turn = nextval('job_turns'), started_at = coalesce(started_at, v_now),
        setbacks = setbacks + (claim IS NOT NULL)::integer,
        state = CASE state WHEN 'queued' THEN 'listing' ELSE state END
      WHERE id = v_due.id RETURNING * INTO job;
    RETURN NEXT;
  END $$`;

// Adds a page of the uploads. A job that reads its list again from the first page already has its videos: what is listed
// above the first of them, on any page, was uploaded meanwhile and does not belong to the job.
const COMMIT_PAGE = `
  CREATE FUNCTION job_commit_page(
    p_job_id text, p_claim uuid, p_channel_id text, p_channel text, p_video_ids text[], p_uploads text[],
    p_continuation text, p_results_seconds double precision
  ) RETURNS TABLE (old_state text, added integer, job jobs) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_old jobs;
    v_known bigint := 0;
  BEGIN
    SELECT * INTO v_old FROM jobs WHERE id = p_job_id AND claim = p_claim FOR UPDATE;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    old_state := v_old.state;
    job := v_old;
    IF v_old.relisting OR v_old.continuation IS NULL AND v_old.total > 0 THEN
      SELECT min(array_position(p_video_ids, video_id)) INTO v_known FROM job_videos
        WHERE job_id = p_job_id AND video_id = ANY (p_video_ids);
      job.relisting := v_known IS NULL;
    END IF;
    WITH new AS (
      SELECT page.* FROM unnest(p_video_ids, p_uploads) WITH ORDINALITY AS page (video_id, upload, place)
        WHERE NOT job.relisting AND page.place > v_known AND NOT EXISTS (
          SELECT FROM job_videos known WHERE known.job_id = p_job_id AND known.video_id = page.video_id)
        ORDER BY page.place LIMIT v_old.video_limit - v_old.total
    )
    INSERT INTO job_videos (job_id, position, video_id, upload)
      SELECT p_job_id, v_old.total + row_number() OVER (ORDER BY place), video_id, upload FROM new;
    GET DIAGNOSTICS added = ROW_COUNT;
    job.channel_id := p_channel_id;
    job.channel := p_channel;
    job.total := v_old.total + added;
    job.continuation := p_continuation;
    -- Pages that add nothing were read before, so that a list that is refused again and again is read ever more seldom.
    IF added > 0 THEN
      job.setbacks := 0;
    END IF;
    job.claim := NULL;
    job.claimed_until := NULL;
    IF p_continuation IS NULL OR job.total >= v_old.video_limit THEN
      job.continuation := NULL;
      job.listed_at := quota_now();
    END IF;
    IF v_old.finished_at IS NULL THEN
      job.reason := NULL;
      job.next_run_at := quota_now();
      job.state := CASE WHEN job.listed_at IS NULL THEN 'listing' WHEN job.succeeded + job.failed = job.total THEN 'completed'
        ELSE 'running' END;
    END IF;
    job := job_store(v_old, job, p_results_seconds);
    RETURN NEXT;
  END $$`;

// Without the claim the reservations are released and nothing else happens. If the slice is stored already, and only the
// response of that commit did not arrive, the job is returned again. The exceptions undo everything: the slice then
// runs again, and finds in the cache what it has fetched.
const COMMIT_SLICE = `
  CREATE FUNCTION job_commit_slice(
    p_job_id text, p_claim uuid, p_settlements json, p_videos json, p_entries bytea, p_change text, p_reason text,
    p_delay_seconds double precision, p_setbacks integer, p_restart_list boolean, p_results_seconds double precision,
    p_free_limit integer, p_pro_limit integer
  ) RETURNS TABLE (old_state text, charged integer, job jobs) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_old jobs;
    v_now timestamptz;
    v_claimed boolean;
    v_settlement record;
    v_settled record;
    v_counts record;
    v_due timestamptz;
  BEGIN
    PERFORM quota_lock((SELECT organization_id FROM jobs WHERE id = p_job_id));
    SELECT * INTO v_old FROM jobs WHERE id = p_job_id AND claim = p_claim FOR UPDATE;
    v_claimed := FOUND;
    charged := 0;
    FOR v_settlement IN SELECT * FROM json_to_recordset(p_settlements) AS settlement (id uuid, fetched integer) LOOP
      SELECT * INTO v_settled FROM quota_settle(
        v_settlement.id, CASE WHEN v_claimed THEN v_settlement.fetched ELSE 0 END, p_free_limit, p_pro_limit);
      IF v_claimed AND (v_settled.first IS NOT TRUE OR v_settled.forfeited_count > 0) THEN
        RAISE EXCEPTION 'the reservation % no longer covers its slice', v_settlement.id USING ERRCODE = 'CT001';
      END IF;
      charged := charged + coalesce(v_settled.charged_count, 0);
    END LOOP;
    IF NOT v_claimed THEN
      SELECT * INTO job FROM jobs WHERE id = p_job_id AND stored_claim = p_claim;
      IF FOUND THEN
        old_state := job.state;
        RETURN NEXT;
      END IF;
      RETURN;
    END IF;
    v_now := quota_now();
    WITH given AS (
      SELECT *, sum(length) OVER (ORDER BY position) - length AS start FROM json_to_recordset(p_videos) AS video (
        position integer, state text, "retryAfterSeconds" double precision, cached boolean, length integer,
        bytes integer, crc bigint)
    ), changed AS (
      UPDATE job_videos video SET state = given.state, cached = given.cached, entry_bytes = given.bytes,
          entry_crc = given.crc, retries = video.retries + (given."retryAfterSeconds" IS NOT NULL)::integer,
          retry_at = v_now + make_interval(secs => given."retryAfterSeconds"),
          entry = CASE WHEN given.length > 0 THEN substring(p_entries FROM given.start::integer + 1 FOR given.length) END
        FROM given
        WHERE video.job_id = p_job_id AND video.position = given.position AND video.state = 'pending'
        RETURNING video.state, video.cached
    )
    SELECT count(*) AS videos, count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE cached) AS cached, count(*) FILTER (WHERE NOT cached) AS fetched
      INTO v_counts FROM changed;
    IF v_counts.videos <> json_array_length(p_videos) OR v_counts.fetched <> charged THEN
      RAISE EXCEPTION 'the slice does not agree with the job %', p_job_id USING ERRCODE = 'CT002';
    END IF;
    old_state := v_old.state;
    job := v_old;
    job.succeeded := job.succeeded + v_counts.cached + v_counts.fetched;
    job.failed := job.failed + v_counts.failed;
    job.cached := job.cached + v_counts.cached;
    job.fetched := job.fetched + v_counts.fetched;
    job.stored_bytes := job.stored_bytes + coalesce(octet_length(p_entries), 0);
    job.claim := NULL;
    job.claimed_until := NULL;
    job.stored_claim := p_claim;
    IF p_restart_list THEN
      job.continuation := NULL;
    END IF;
    IF v_old.finished_at IS NULL THEN
      job.setbacks := p_setbacks;
      job.reason := NULL;
      job.next_run_at := v_now + make_interval(secs => coalesce(p_delay_seconds, 0));
      IF job.listed_at IS NOT NULL AND job.succeeded + job.failed = job.total THEN
        job.state := 'completed';
      ELSIF p_change IS NOT NULL THEN
        job.state := p_change;
        job.reason := p_reason;
        IF p_delay_seconds IS NULL THEN
          job.next_run_at := NULL;
        END IF;
      ELSIF job.listed_at IS NULL THEN
        job.state := 'listing';
      ELSE
        job.state := 'running';
      END IF;
      PERFORM FROM job_videos WHERE job_id = p_job_id AND state = 'pending' AND retry_at IS NULL LIMIT 1;
      IF job.listed_at IS NOT NULL AND job.next_run_at IS NOT NULL AND NOT FOUND THEN
        SELECT min(retry_at) INTO v_due FROM job_videos WHERE job_id = p_job_id AND state = 'pending';
        job.next_run_at := greatest(job.next_run_at, v_due);
      END IF;
    END IF;
    job := job_store(v_old, job, p_results_seconds);
    RETURN NEXT;
  END $$`;

// What changes without a slice: jobs of deleted organizations end, and paused ones go on when their organization has room
// in its quota, or a plan that includes jobs, again.
const SWEEP = `
  CREATE FUNCTION job_sweep(
    p_plans text[], p_free_limit integer, p_pro_limit integer, p_results_seconds double precision
  ) RETURNS TABLE (old_state text, job jobs) LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_now timestamptz := quota_now();
    v_found record;
    v_old jobs;
  BEGIN
    FOR v_found IN
      SELECT candidate.id, organization.deleted_at FROM jobs candidate
        JOIN organizations organization ON organization.id = candidate.organization_id
        WHERE candidate.finished_at IS NULL AND candidate.deleted_at IS NULL AND (
          organization.deleted_at IS NOT NULL
          OR candidate.state = 'paused' AND candidate.reason = 'plan_changed' AND organization.plan = ANY (p_plans)
          OR candidate.state = 'paused' AND candidate.reason = 'plan_limit_exceeded' AND coalesce(
            (SELECT used FROM quota_periods WHERE organization_id = organization.id
               AND period_start = quota_period(v_now)), 0)
            < quota_limit(organization.monthly_limit, organization.plan, p_free_limit, p_pro_limit))
        LIMIT 200 FOR UPDATE OF candidate SKIP LOCKED
    LOOP
      SELECT * INTO v_old FROM jobs WHERE id = v_found.id;
      old_state := v_old.state;
      job := v_old;
      job.reason := NULL;
      IF v_found.deleted_at IS NOT NULL THEN
        job.state := 'canceled';
      ELSE
        job.state := CASE WHEN job.listed_at IS NULL THEN 'listing' ELSE 'running' END;
        job.next_run_at := v_now;
      END IF;
      job := job_store(v_old, job, p_results_seconds);
      RETURN NEXT;
    END LOOP;
  END $$`;

// Removes results that have expired or were deleted, some rows of one job at a time, and the job itself: at once when it
// was deleted, and a week after its results when it has expired. A job whose slice is running stays until that is charged.
// Returns the number of removed rows.
const REMOVE_BATCH = `
  CREATE FUNCTION job_remove_batch(p_rows_max integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    v_now timestamptz := quota_now();
    v_job jobs;
    v_rows integer;
    v_bytes bigint;
  BEGIN
    SELECT * INTO v_job FROM jobs job
      WHERE coalesce(job.deleted_at, job.expires_at) <= v_now AND (job.claim IS NULL OR job.claimed_until <= v_now) AND (
        job.deleted_at IS NOT NULL OR job.expires_at <= v_now - interval '7 days'
        OR EXISTS (SELECT FROM job_videos WHERE job_id = job.id))
      ORDER BY coalesce(job.deleted_at, job.expires_at) LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      RETURN 0;
    END IF;
    WITH removed AS (
      DELETE FROM job_videos WHERE job_id = v_job.id AND position IN (
        SELECT position FROM job_videos WHERE job_id = v_job.id ORDER BY position LIMIT p_rows_max)
        RETURNING octet_length(entry) AS stored
    )
    SELECT count(*), coalesce(sum(stored), 0) INTO v_rows, v_bytes FROM removed;
    IF v_rows = p_rows_max OR v_job.deleted_at IS NULL AND v_job.expires_at > v_now - interval '7 days' THEN
      UPDATE jobs SET stored_bytes = greatest(0, stored_bytes - v_bytes), claim = NULL, claimed_until = NULL
        WHERE id = v_job.id;
      RETURN v_rows;
    END IF;
    DELETE FROM jobs WHERE id = v_job.id;
    RETURN v_rows + 1;
  END $$`;
