import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DomainError } from '../../src/domain/errors.js';
import { unlistedVideo } from '../../src/domain/transcript.js';
import { NEW_JOB_EXAMPLE } from '../../src/jobs/dto/job.dto.js';
import type { Cause, JobState, JobReason, OnQuota } from '../../src/jobs/job.js';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { SliceRepository } from '../../src/jobs/work/slice.repository.js';
import type { ClaimedSlice, ListedPage, SliceOutcome } from '../../src/jobs/work/slice.js';
import { drawnTransitions, loggedTransitions } from './transitions.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';

/** A job as it can stand in the database. `again` is a list that ended incomplete. */
interface Situation {
  state: JobState;
  reason?: JobReason;
  isStarted: boolean;
  list: 'incomplete' | 'again' | 'complete';
  videos: 'none' | 'pending' | 'decided';
}

const [NEW, STARTED] = [{ isStarted: false }, { isStarted: true }] as const;
const [UNLISTED, FIRST_PAGE] = [
  { list: 'incomplete', videos: 'none' },
  { list: 'incomplete', videos: 'pending' },
] as const;
const [PENDING, DECIDED] = [
  { list: 'complete', videos: 'pending' },
  { list: 'complete', videos: 'decided' },
] as const;

const SITUATIONS: readonly Situation[] = [
  { state: 'queued', ...NEW, ...UNLISTED },
  // Of a list of videos.
  { state: 'queued', ...NEW, ...PENDING },
  ...[UNLISTED, FIRST_PAGE].map((list) => ({ state: 'listing', ...STARTED, ...list }) as const),
  { state: 'running', ...STARTED, ...PENDING },
  ...(['plan_changed', 'upstream_blocked'] as const).flatMap((reason) =>
    [UNLISTED, FIRST_PAGE, PENDING].map((list) => ({ state: 'paused', reason, ...STARTED, ...list }) as const),
  ),
  { state: 'paused', reason: 'plan_limit_exceeded', ...STARTED, ...PENDING },
  { state: 'paused', reason: 'list_incomplete', ...STARTED, list: 'again', videos: 'pending' },
  { state: 'paused', reason: 'list_incomplete', ...STARTED, list: 'again', videos: 'decided' },
  { state: 'completed', ...STARTED, ...DECIDED },
  { state: 'canceled', ...NEW, ...UNLISTED },
  ...[UNLISTED, FIRST_PAGE, PENDING, DECIDED].map((list) => ({ state: 'canceled', ...STARTED, ...list }) as const),
  { state: 'failed', reason: 'channel_not_found', ...STARTED, ...UNLISTED },
  { state: 'failed', reason: 'plan_limit_exceeded', ...STARTED, ...PENDING },
];

const CLAIM = randomUUID();
const CHANNEL = { id: `UC${'n'.repeat(22)}`, name: 'Northwind Rowing', handle: '@northwindrowing' };
const UPLOADS = [unlistedVideo('northwind01')];

/** What a slice of the list, and one of videos, can find out. */
const OF_BOTH: readonly SliceOutcome[] = [
  { type: 'organization_deleted' },
  { type: 'plan_excludes' },
  { type: 'blocked' },
  { type: 'stopped', restartList: false },
  { type: 'failed', restartList: false },
];
const PAGES: readonly ListedPage[] = [
  { uploads: [], next: null, incomplete: false },
  { uploads: UPLOADS, next: null, incomplete: false },
  { uploads: UPLOADS, next: 'more', incomplete: false },
  { uploads: UPLOADS, next: null, incomplete: true },
].map((page) => ({ channel: CHANNEL, playlist: null, hidden: null, listEnd: null, ...page }));
const OF_VIDEOS: readonly SliceOutcome[] = [
  { type: 'unserved' },
  { type: 'quota_reserved' },
  { type: 'without_quota' },
];
const SERVED: SliceOutcome = { type: 'served', seconds: 0 };
const RESULTS = {
  reservation: undefined,
  fetched: 0,
  videos: [{ position: 1, state: 'failed', length: 2, bytes: 2, crc: 0 }],
  entries: Buffer.from('{}'),
} as const;

interface Action {
  cause: Cause;
  run: (id: string, situation: Situation) => Promise<unknown>;
}

let service: TestService;
let organization: TestOrganization;

beforeAll(async () => {
  service = await startService({ environment: { JOB_CONCURRENCY: 0 } });
  organization = await service.organization();
});
afterAll(() => service.close());

it('the functions of the database make every transition of the diagram in docs/jobs.md, and no other', async () => {
  const made = new Set<string>();
  for (const situation of SITUATIONS)
    for (const { cause, run } of actionsOn(situation)) {
      const id = await insert(situation, cause === 'slice');
      await run(id, situation);
      const [row] = await service.query(`DELETE FROM jobs WHERE id = '${id}' RETURNING state`);
      if (row?.['state'] !== situation.state) made.add(`${cause}: ${situation.state} to ${String(row?.['state'])}`);
    }
  const drawn = drawnTransitions('a job');
  expect([...made].sort()).toEqual(drawn);
  // Deletions change the state without a line of their own.
  const logged = loggedTransitions(service, 'job_state_changed');
  expect(logged).toEqual(drawn.filter((transition) => !transition.startsWith('delete:')));
});

function actionsOn({ state, isStarted, list, videos }: Situation): Action[] {
  const [jobs, slices] = [service.app.get(JobsService), service.app.get(SliceRepository)];
  const actions: Action[] = [
    { cause: 'claim', run: () => slices.claim(null) },
    { cause: 'cancel', run: (id) => unlessRefused(jobs.cancel(organization.id, id)) },
    { cause: 'delete', run: (id) => jobs.delete(organization.id, id) },
    { cause: 'resume', run: (id) => unlessRefused(jobs.resume(organization.id, id)) },
    { cause: 'sweep', run: () => slices.sweep() },
    { cause: 'sweep', run: () => whileDeleted(() => slices.sweep()) },
  ];
  // A canceled job can have a running slice, too.
  if (!isStarted || state === 'completed' || state === 'failed') return actions;
  const end = (outcome: SliceOutcome, onQuota: OnQuota, results?: typeof RESULTS): Action => ({
    cause: 'slice',
    run: async (id, situation) => {
      await service.query(`UPDATE jobs SET request = request::jsonb || '{"onQuota":"${onQuota}"}' WHERE id = '${id}'`);
      return slices.commitSlice(sliceOf(id, situation), outcome, results);
    },
  });
  actions.push(...OF_BOTH.map((outcome) => end(outcome, 'pause')));
  if (list !== 'complete') {
    actions.push(end({ type: 'channel_not_found' }, 'pause'));
    for (const page of PAGES)
      actions.push({ cause: 'slice', run: (id, situation) => slices.commitPage(sliceOf(id, situation), page) });
  }
  // What is listed is fetched while a page is due.
  if (videos !== 'none')
    for (const onQuota of ['pause', 'fail'] as const)
      actions.push(...OF_VIDEOS.map((outcome) => end(outcome, onQuota)));
  if (videos === 'pending') actions.push(end(SERVED, 'pause', RESULTS));
  return actions;
}

function sliceOf(id: string, { state, reason }: Situation): ClaimedSlice {
  const job = { ...NEW_JOB_EXAMPLE, id, state, reason: reason ?? null };
  const { id: organizationId, keyId } = organization;
  const facts = {
    claim: CLAIM,
    plan: 'pro',
    keeps: false,
    kind: 'videos',
    continuation: null,
    setbacks: 0,
    nowMs: Date.now(),
    isSubscription: false,
  } as const;
  return { job, organizationId, keyId, ...facts };
}

const REQUEST = JSON.stringify(NEW_JOB_EXAMPLE.request);

async function insert({ state, reason, isStarted, list, videos }: Situation, isClaimed: boolean): Promise<string> {
  const id = `job_${randomUUID().replaceAll('-', '').slice(0, 22)}`;
  const isFinished = ['completed', 'canceled', 'failed'].includes(state);
  const waits = reason === 'plan_changed' || reason === 'plan_limit_exceeded';
  const now = (isTrue: boolean): string => (isTrue ? 'clock_now()' : 'NULL');
  await service.query(`
    INSERT INTO jobs (id, organization_id, key_id, request, results_seconds, state, reason, created_at,
                      started_at, finished_at, next_run_at, listed_at, list_retry_at, claim, claimed_until, total, failed,
                      last_position)
      VALUES ('${id}', '${organization.id}', '${organization.keyId}', '${REQUEST}', 3600, '${state}',
              ${reason ? `'${reason}'` : 'NULL'}, clock_now(), ${now(isStarted)}, ${now(isFinished)},
              ${now(!isFinished && !waits)}, ${now(list === 'complete')}, ${now(list === 'again')},
              ${isClaimed ? `'${CLAIM}', clock_now() + interval '1 hour'` : 'NULL, NULL'},
              ${videos === 'none' ? 0 : 1}, ${videos === 'decided' ? 1 : 0}, ${videos === 'none' ? 0 : 1});
    INSERT INTO job_videos (job_id, position, video_id, upload, state, entry, sequence)
      SELECT '${id}', 1, 'northwind00', '{}', CASE WHEN decided THEN 'failed' ELSE 'pending' END,
             CASE WHEN decided THEN '\\x'::bytea END, CASE WHEN decided THEN 1 END
        FROM (SELECT ${videos === 'decided'} AS decided) video WHERE ${videos !== 'none'}`);
  return id;
}

/** A job that has finished refuses most operations. */
async function unlessRefused(operation: Promise<unknown>): Promise<void> {
  await operation.catch((error: unknown) => {
    if (!(error instanceof DomainError)) throw error;
  });
}

async function whileDeleted(work: () => Promise<unknown>): Promise<void> {
  await service.query(`UPDATE organizations SET deleted_at = clock_now() WHERE id = '${organization.id}'`);
  await work();
  await service.query(`UPDATE organizations SET deleted_at = NULL WHERE id = '${organization.id}'`);
}
