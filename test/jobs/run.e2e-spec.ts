import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { JobsService } from '../../src/jobs/jobs.service.js';
import type { EntryJson, JobRun } from './job-run.js';
import { SliceSteps } from './slice-steps.js';

let steps: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start();
});
afterAll(() => steps.service.close());
beforeEach(() => steps.reset());

async function finished(channel: string, request: Parameters<typeof JobRun.create>[3] = {}): Promise<JobRun> {
  const run = await steps.job(channel, request);
  await steps.finish();
  await run.verify();
  return run;
}

describe('an archive job', () => {
  it('stores the entries of the whole channel in its order, as a call returns them, and charges each transcript once', async () => {
    const { service } = steps;
    const run = await finished('@130-videos-no-2');
    const job = await run.get();
    expect(job).toMatchObject({
      state: 'completed',
      channel: { handle: '@130-videos-no-2' },
      summary: { total: 130, fetched: 130, pending: 0 },
      checkAgainSeconds: null,
    });
    expect(Date.parse(job.expiresAt ?? '') - Date.parse(job.finishedAt ?? '')).toBe(72 * 3_600_000);
    const entries = await run.entries();
    const places = entries.map((_, index) => index + 1);
    expect(entries.map(({ position }) => position)).toEqual(places);
    expect(entries.map(({ entry }) => entry.position)).toEqual(places);
    const call = await service.get('/channels/@130-videos-no-2/transcripts?limit=100', run.organization.key);
    const cached = ({ position: _, ...entry }: EntryJson) => ({ ...entry, cached: entry.ok });
    expect(entries.slice(0, 100).map(({ entry }) => cached(entry))).toEqual(
      (call.body as { results: EntryJson[] }).results.map(cached),
    );
  });

  it('ends at its limit, and before the video of since', async () => {
    const limited = await finished('@130-videos-no-2', { limit: 101 });
    const positions = await limited.entries();
    expect(positions).toHaveLength(101);
    const since = positions[99]?.entry.videoId ?? '';
    const newer = await finished('@130-videos-no-2', { since });
    expect((await newer.entries()).map(({ entry }) => entry.videoId)).toEqual(
      positions.slice(0, 99).map(({ entry }) => entry.videoId),
    );
    expect((await newer.get()).summary).toMatchObject({ total: 99, cached: 99, fetched: 0 });
    const none = await finished('@130-videos-no-2', { since: positions[0]?.entry.videoId ?? '' });
    expect(await none.get()).toMatchObject({ state: 'completed', summary: { total: 0 } });
  });

  it('of a channel without uploads is completed', async () => {
    for (const channel of ['@emptyslip', '@drydock'])
      expect(await (await finished(channel)).get()).toMatchObject({ state: 'completed', summary: { total: 0 } });
  });

  it('reads the languages that it was created with', async () => {
    const run = await finished('@harbourlight', { languages: ['de', 'en'], limit: 10 });
    // A live stream is tried again later; the results of a finished job do not wait for it.
    await run.cancel();
    const languages = (await run.entries()).flatMap(({ entry }) => Object.keys(entry.transcript));
    expect(languages).toContain('en');
    expect(languages.filter((language) => !/^(de|en)/.test(language))).toEqual([]);
  });

  it('of an unknown channel fails with that reason, and goes on when it is resumed', async () => {
    const unknown = await finished('@nobodyhere');
    expect(await unknown.get()).toMatchObject({ state: 'failed', reason: 'channel_not_found', channel: null });
    expect((await unknown.resume()).state).toBe('listing');
    await steps.finish();
    expect((await unknown.get()).state).toBe('failed');
  });

  it('reads the list again when the platform no longer accepts its place in it, without the uploads since its start', async () => {
    const { service } = steps;
    const run = await steps.job('@130-videos-no-2');
    await steps.steps(1);
    service.fakeYoutube.publish({ channel: '@130-videos-no-2', count: 2 });
    await service.query(`UPDATE jobs SET continuation = 'refused' WHERE id = '${run.id}'`);
    await steps.steps(1);
    expect(await run.get()).toMatchObject({ state: 'listing', summary: { total: 100 } });
    expect(await steps.step()).toBe(false);
    await steps.pass(30);
    await steps.finish();
    expect((await run.verify()).summary).toMatchObject({ total: 130, succeeded: 130, pending: 0 });
    const videos = (await run.entries()).map(({ entry }) => entry.metadata.title);
    expect([videos[0], videos.at(-1)]).toEqual(['Generated talk 130 of 130', 'Generated talk 1 of 130']);
  });
});

describe('the operations on a job:', () => {
  it('a canceled job that is resumed continues without repeating a video', async () => {
    const run = await steps.job('@60-videos-no-3');
    expect((await run.cancel()).state).toBe('canceled');
    expect((await run.resume()).state).toBe('queued');
    await steps.steps(2);
    expect((await run.cancel()).state).toBe('canceled');
    expect((await run.cancel()).state).toBe('canceled');
    expect(await steps.step()).toBe(false);
    expect(await run.verify()).toMatchObject({ summary: { total: 60, fetched: 25, pending: 35 } });
    expect(await run.entries()).toHaveLength(25);
    expect(await run.resume()).toMatchObject({ state: 'running', finishedAt: null, expiresAt: null });
    await steps.finish();
    expect(await run.verify()).toMatchObject({ state: 'completed', summary: { fetched: 60 } });
    await expect(run.cancel()).rejects.toMatchObject({ code: 'job_finished' });
    await expect(run.resume()).rejects.toMatchObject({ code: 'job_finished' });
  });

  it('expired results are removed, and a week later the job', async () => {
    const { app } = steps.service;
    const run = await finished('@3-videos-no-3');
    await steps.pass(72 * 3_600 + 60);
    await expect(run.entries()).rejects.toMatchObject({ code: 'results_expired' });
    await steps.remove();
    expect(await run.get()).toMatchObject({ state: 'completed', summary: { total: 3 } });
    expect(await steps.service.query(`SELECT FROM job_videos WHERE job_id = '${run.id}'`)).toEqual([]);
    await steps.pass(7 * 86_400);
    await steps.remove();
    await expect(app.get(JobsService).get(run.organization.id, run.id)).rejects.toMatchObject({
      code: 'job_not_found',
    });
    expect(await steps.service.query('SELECT sum(stored_bytes) FROM jobs WHERE expires_at < clock_now()')).toEqual([
      { sum: null },
    ]);
  });
});
