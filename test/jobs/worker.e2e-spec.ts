import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { BackgroundLoops } from '../../src/background/background-loops.js';
import { startService, type TestService } from '../harness/service.js';
import { JobRun } from './job-run.js';

const ENVIRONMENT = { JOB_CONCURRENCY: 2, JOB_SWEEP_SECONDS: 1 };

let service: TestService;

beforeAll(async () => {
  service = await startService({ environment: ENVIRONMENT });
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

describe('the workers of a process', () => {
  it('start a job when it is created, and run the jobs of several organizations to their end', async () => {
    const runs = [];
    for (let index = 0; index < 3; index++)
      runs.push(await JobRun.create(service, await service.organization(), `@60-videos-no-${30 + index}`));
    for (const run of runs) {
      await run.untilCompleted();
      expect((await run.verify()).summary.fetched).toBe(60);
    }
  });

  it('report each change of a state and each slice, and the metrics of all jobs', async () => {
    const run = await JobRun.create(service, await service.organization(), '@30-videos-no-35');
    await run.untilCompleted();
    const lines = service.logs
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ event, jobId }) => jobId === run.id && event !== 'request');
    expect(lines.map(({ event, from, to, slice }) => [event, from ?? slice, to])).toEqual([
      ['job_created', undefined, undefined],
      ['job_state_changed', 'queued', 'listing'],
      ['job_state_changed', 'listing', 'running'],
      ['slice_finished', 'listing', undefined],
      ['slice_finished', 'videos', undefined],
      ['job_state_changed', 'running', 'completed'],
      ['slice_finished', 'videos', undefined],
    ]);
    expect(lines.at(-1)).toMatchObject({ result: 'committed', counts: { succeeded: 5, fetched: 5, pending: 0 } });
    const { text } = await service.request('GET', '/metrics');
    expect(text).toMatch(/^ct_jobs\{state="completed"\} [1-9]/m);
    expect(text).toMatch(/^ct_jobs\{state="paused"\} 0$/m);
    expect(text).toMatch(/^ct_job_results_bytes [1-9]/m);
    expect(text).toMatch(/^ct_job_oldest_due_seconds 0$/m);
    expect(text).toMatch(/^ct_job_slices_total\{result="committed"\} [1-9]/m);
  });
});

describe('several processes', () => {
  let others: TestService[] = [];
  afterEach(async () => {
    for (const other of others) await other.close();
    others = [];
  });

  it('share the jobs, and a process that stops leaves its slice to the others without a charge for what it did not fetch', async () => {
    const stopping = await startService({ environment: ENVIRONMENT });
    others.push(stopping);
    const hold = stopping.fakeYoutube.hold({ kind: 'timedtext' });
    const run = await JobRun.create(stopping, await stopping.organization(), '@40-videos-no-36');
    await hold.arrived;
    await shutDownWorker(stopping);
    expect(await run.verify()).toMatchObject({ state: 'running', summary: { fetched: 0, pending: 40 } });
    expect(await stopping.query(`SELECT claim FROM jobs WHERE id = '${run.id}'`)).toEqual([{ claim: null }]);
    hold.release();
    const other = await startService({
      environment: ENVIRONMENT,
      databaseUrl: () => Promise.resolve(stopping.databaseUrl),
    });
    others.unshift(other);
    await run.untilCompleted();
    expect((await run.verify()).summary).toMatchObject({ fetched: 40 });
  });
});

async function shutDownWorker({ app }: TestService): Promise<void> {
  await app.get(BackgroundLoops).stop();
}
