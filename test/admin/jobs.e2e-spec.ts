import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { JOB_STATES, PAUSE_REASONS } from '../../src/jobs/job.js';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { scrape, sumOf } from '../metrics/exposition.js';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../harness/service.js';
import { type CliResult, CliSession } from './run-cli.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-7c2e';
const TOKEN = { Authorization: `Bearer ${ADMIN_TOKEN}` };
const NOT_FOUND = 'Job not found. No job has this ID, or it was deleted.';
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

const overdue = (id: string, seconds: number): Promise<unknown> =>
  service.query(`UPDATE jobs SET next_run_at = clock_now() - make_interval(secs => ${seconds}) WHERE id = '${id}'`);

describe('the jobs of all organizations', () => {
  it('are counted by the metrics of the alerts, with the reasons of paused ones', async () => {
    await overdue(ids[0] ?? '', 900);
    await service.query(`UPDATE jobs SET state = 'paused', reason = 'upstream_blocked', stored_bytes = 5000
      WHERE id = '${ids[1]}'`);
    const samples = await scrape(service);
    expect(JOB_STATES.map((state) => sumOf(samples, 'ct_jobs', { state }))).toEqual([2, 0, 0, 1, 0, 0, 0]);
    expect(PAUSE_REASONS.map((reason) => sumOf(samples, 'ct_jobs_paused', { reason }))).toEqual([0, 1, 0, 0]);
    expect(sumOf(samples, 'ct_job_oldest_due_seconds')).toBeGreaterThanOrEqual(900);
    expect(sumOf(samples, 'ct_job_results_bytes')).toBe(5000);
  });

  it('are canceled by ID', async () => {
    const [first = '', second = '', third = ''] = ids;
    const canceled = await admin('POST', `/${first}/cancel`);
    expect(canceled).toMatchObject({ status: 200, body: { id: first, state: 'canceled' } });
    expect(await admin('POST', `/${first}/cancel`)).toMatchObject({ status: 200, body: { state: 'canceled' } });
    expect(await json('cancel', first)).toMatchObject({ id: first, state: 'canceled' });
    expect(await json('cancel', second)).toMatchObject({ id: second, state: 'canceled', organizationId: other.id });
    await service.query(`UPDATE jobs SET state = 'completed', finished_at = clock_now(), next_run_at = NULL
      WHERE id = '${third}'`);
    expect(await admin('POST', `/${third}/cancel`)).toMatchObject({
      status: 409,
      body: { error: { code: 'job_finished' } },
    });
    expect(await cli('cancel', third)).toMatchObject({ code: 1, output: '' });
  });

  it.each<[id: string]>([[`job_${'0'.repeat(22)}`], ['job_%00']])('are 404 for the unknown ID %s', async (id) => {
    expect(await admin('POST', `/${id}/cancel`)).toMatchObject({
      status: 404,
      body: { error: { code: 'job_not_found', message: NOT_FOUND } },
    });
    const { code, output, errorOutput } = await cli('cancel', id);
    expect([code, output, errorOutput]).toEqual([1, '', `error: ${NOT_FOUND}\n`]);
  });
});
