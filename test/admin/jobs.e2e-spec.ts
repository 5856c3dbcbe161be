import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { JOB_STATES, PAUSE_REASONS } from '../../src/jobs/job.js';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { scrape, sumOf } from '../metrics/exposition.js';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../service.js';
import { type CliResult, CliSession } from './run-cli.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-7c2e';
const TOKEN = { Authorization: `Bearer ${ADMIN_TOKEN}` };
const NO_REQUEST = { languages: [], limit: null, since: null, onQuota: 'pause' } as const;

let service: TestService;
let session: CliSession;
let acme: TestOrganization;
let other: TestOrganization;
/** Oldest first: two of one organization and one of another. No process runs them. */
const ids: string[] = [];

beforeAll(async () => {
  session = new CliSession();
  service = await startService({ environment: { ADMIN_TOKEN, JOB_CONCURRENCY: 0 } });
  [acme, other] = [await service.organization(), await service.organization()];
});
beforeEach(async () => {
  await service.query('DELETE FROM jobs');
  ids.length = 0;
  for (const [organization, channel] of [
    [acme, '@tidewater'] as const,
    [other, '@港の灯台'] as const,
    [acme, 'bench'] as const,
  ]) {
    const payer = { organizationId: organization.id, keyId: organization.keyId, requestId: 'test' };
    ids.push((await service.app.get(JobsService).create({ ...NO_REQUEST, channel }, payer)).id);
  }
});
afterAll(async () => {
  session.close();
  await service.close();
});

function admin(method: string, path: string): Promise<ServiceResponse> {
  return service.request(method, `/admin/jobs${path}`, TOKEN);
}

const cli = (...args: string[]): Promise<CliResult> =>
  session.run(['job', ...args], { DATABASE_URL: service.databaseUrl });

/** The JSON document of a command that succeeds without any other output. */
async function json(...args: string[]): Promise<unknown> {
  const { code, output, errorOutput } = await cli(...args, '--json');
  expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
  return JSON.parse(output);
}

const idsOf = (jobs: unknown): string[] => (jobs as { id: string }[]).map(({ id }) => id);
const overdue = (id: string, seconds: number): Promise<unknown> =>
  service.query(`UPDATE jobs SET next_run_at = quota_now() - make_interval(secs => ${seconds}) WHERE id = '${id}'`);

describe('the jobs of all organizations', () => {
  it('are listed newest first, in pages, by organization and by state', async () => {
    const newestFirst = [...ids].reverse();
    const whole = await admin('GET', '');
    expect([whole.status, idsOf(whole.body.jobs), whole.body.next]).toEqual([200, newestFirst, null]);
    expect(whole.body.jobs[0]).toMatchObject({ organizationId: acme.id, keyId: acme.keyId, state: 'queued' });
    const first = await admin('GET', '?limit=2');
    const last = await admin('GET', `?limit=2&after=${first.body.next}`);
    expect([...idsOf(first.body.jobs), ...idsOf(last.body.jobs)]).toEqual(newestFirst);
    expect(last.body.next).toBeNull();
    expect((await admin('GET', `?limit=2&after=${ids[1]}`)).status).toBe(400);
    expect(idsOf((await admin('GET', `?organization=${other.id}`)).body.jobs)).toEqual([ids[1]]);
    expect((await admin('GET', '?state=running')).body).toEqual({ jobs: [], next: null });
    expect(idsOf(await json('list'))).toEqual(newestFirst);
    expect(idsOf(await json('list', '--organization', other.id, '--state', 'queued'))).toEqual([ids[1]]);
    expect((await cli('list')).output).toMatch(/^ID +ORGANIZATION +STATE .*\njob_\w{22} {2}org_\w+ {2}queued {2}- {2}/);
  });

  it('are shown by ID, as the same document in both ways', async () => {
    const [id = ''] = ids;
    const shown = await admin('GET', `/${id}`);
    expect(shown).toMatchObject({ status: 200, body: { id, request: { channel: '@tidewater' } } });
    const document = (await json('show', id)) as { overdueSeconds: number };
    expect({ ...document, overdueSeconds: 0 }).toEqual({ ...shown.body, overdueSeconds: 0 });
    expect((await cli('show', id)).output).toMatch(/^channel +@tidewater$/m);
  });

  it('are counted by state, with the slices that are due and the jobs that do not move', async () => {
    const moving = await admin('GET', '/stats');
    expect(moving).toMatchObject({
      status: 200,
      body: {
        jobs: { queued: 3, running: 0 },
        slices: { running: 0, due: 3 },
        pendingVideos: 0,
        storedBytes: 0,
        stuck: [],
      },
    });
    await overdue(ids[1] ?? '', 600);
    await overdue(ids[0] ?? '', 900);
    await service.query(`UPDATE jobs SET claim = gen_random_uuid(), claimed_until = quota_now() + interval '1 minute'
      WHERE id = '${ids[2]}'`);
    const { body } = await admin('GET', '/stats');
    expect(body.slices).toMatchObject({ running: 1, due: 2 });
    expect(body.slices.oldestDueSeconds).toBeGreaterThanOrEqual(900);
    expect(idsOf(body.stuck)).toEqual([ids[0], ids[1]]);
    expect(await json('stats')).toMatchObject({
      slices: { running: 1, due: 2 },
      stuck: [{ id: ids[0] }, { id: ids[1] }],
    });
    const { output } = await cli('stats');
    expect(output).toMatch(/^slices due +2$/m);
    expect(output).toMatch(/Jobs that do not move although they are due:\nID .* OVERDUE SECONDS\njob_/);
  });

  it('are counted by the metrics of the alerts, with the reasons of paused ones', async () => {
    await overdue(ids[0] ?? '', 900);
    await service.query(`UPDATE jobs SET state = 'paused', reason = 'upstream_blocked', stored_bytes = 5000
      WHERE id = '${ids[1]}'`);
    const samples = await scrape(service);
    expect(JOB_STATES.map((state) => sumOf(samples, 'ct_jobs', { state }))).toEqual([2, 0, 0, 1, 0, 0, 0]);
    expect(PAUSE_REASONS.map((reason) => sumOf(samples, 'ct_jobs_paused', { reason }))).toEqual([0, 1, 0]);
    expect(sumOf(samples, 'ct_job_oldest_due_seconds')).toBeGreaterThanOrEqual(900);
    expect(sumOf(samples, 'ct_job_results_bytes')).toBe(5000);
  });

  it('are canceled by ID; over HTTP that is logged', async () => {
    const [first = '', second = '', third = ''] = ids;
    const canceled = await admin('POST', `/${first}/cancel`);
    expect(canceled).toMatchObject({ status: 200, body: { id: first, state: 'canceled', overdueSeconds: null } });
    const line = service.logs.filter((one) => one.includes('"admin_change"')).at(-1);
    expect(JSON.parse(line ?? '{}')).toMatchObject({ action: 'job_canceled', organizationId: acme.id, jobId: first });
    const lines = service.logs.length;
    expect(await admin('POST', `/${first}/cancel`)).toMatchObject({ status: 200, body: { state: 'canceled' } });
    expect(service.logs.slice(lines).join('')).not.toContain('admin_change');
    expect(await json('cancel', first)).toMatchObject({ id: first, state: 'canceled' });
    expect(await json('cancel', second)).toMatchObject({ id: second, state: 'canceled', organizationId: other.id });
    await service.query(`UPDATE jobs SET state = 'completed', finished_at = quota_now(), next_run_at = NULL
      WHERE id = '${third}'`);
    expect(await admin('POST', `/${third}/cancel`)).toMatchObject({
      status: 409,
      body: { error: { code: 'job_finished' } },
    });
    expect(await cli('cancel', third)).toMatchObject({ code: 1, output: '' });
  });

  it.each<[path: string, status: number, code: string]>([
    [`/job_${'0'.repeat(22)}`, 404, 'job_not_found'],
    ['/job_%00', 404, 'job_not_found'],
    ['?state=stopped', 400, 'invalid_request'],
    ['?organization=org_unknown', 404, 'not_found'],
    [`?after=job_${'0'.repeat(22)}`, 400, 'invalid_request'],
    ['?page=2', 400, 'invalid_request'],
    ['/stats?state=paused', 400, 'invalid_request'],
  ])('refuse GET /admin/jobs%s with %i', async (path, status, code) => {
    expect(await admin('GET', path)).toMatchObject({ status, body: { error: { code } } });
  });

  it.each<[args: string[], line: RegExp]>([
    [['show', 'job_unknown'], /^error: .*job.*\n$/i],
    [['cancel', `job_${'0'.repeat(22)}`], /^error: .*job.*\n$/i],
    [['list', '--state', 'stopped'], /^error: .*Allowed choices are queued, listing,.*\n$/],
    [['list', '--organization', 'nobody'], /^error: No organization has the ID or name "nobody"\.\n$/],
  ])('end the command `job %j` with one line when they are unknown', async (args, line) => {
    const { code, output, errorOutput } = await cli(...args);
    expect([code, output]).toEqual([1, '']);
    expect(errorOutput).toMatch(line);
  });
});
