import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ChannelTranscriptsClient, type Job, type VideoTranscript } from '../src/index.js';
import { json, lost, refusal, scripted, unavailable, type SentRequest } from './scripted-fetch.js';

const JOB: Job = {
  id: 'job_3VqTb8yWm2LkR0sXcE9a1D',
  state: 'running',
  reason: null,
  channel: null,
  playlist: null,
  request: {
    ...{ channel: '@tidewater', playlist: null, videos: null, languages: [], match: 'all', kinds: [], include: [] },
    ...{ chunkSeconds: null, limit: null, since: null, onQuota: 'pause', labels: {} },
  },
  labels: {},
  summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 },
  hidden: 0,
  createdAt: '2026-11-20T16:00:00.000Z',
  startedAt: null,
  finishedAt: null,
  expiresAt: null,
  checkAgainSeconds: 7,
};
const FINISHED: Job = { ...JOB, state: 'completed', checkAgainSeconds: null };

const entryOf = (position: number): VideoTranscript => ({
  videoId: `video-${position}`,
  ok: true,
  metadata: {
    title: null,
    url: '',
    publishedAt: null,
    publishedText: null,
    durationSeconds: null,
    viewCount: null,
    thumbnailUrl: null,
    kind: null,
    captionTracks: null,
  },
  transcript: {},
  cached: false,
});

function clientOf(...steps: Parameters<typeof scripted>) {
  const service = scripted(...steps);
  return { client: new ChannelTranscriptsClient(service.options, service.wait), ...service };
}

describe('creating a job', () => {
  it('sends the same idempotency key again when the response was lost, so that there is one job', async () => {
    const { client, sent } = clientOf(lost, json(JOB, 202));
    expect(await client.jobs.create('@tidewater', { limit: 3 })).toEqual(JOB);
    const [first, second] = sent.map(({ headers }) => headers.get('Idempotency-Key'));
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(second).toBe(first);
    expect(sent[1]?.body).toEqual({ channel: '@tidewater', limit: 3, onQuota: 'pause' });
    await client.jobs.create('@tidewater', { idempotencyKey: 'mine' });
    expect(sent[2]?.headers.get('Idempotency-Key')).toBe('mine');
    await client.jobs.create('@tidewater', JSON.parse('{ "idempotencyKey": null }') as object);
    expect(sent[3]?.headers.get('Idempotency-Key')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('names a playlist or videos', async () => {
    const { client, sent } = clientOf(json(JOB, 202), json(JOB, 202));
    await client.jobs.create(
      { playlist: 'PLharbourlight-boats' },
      { kinds: ['video'], match: 'first', chunkSeconds: 60 },
    );
    await client.jobs.create({ videos: ['hl-dinghy__'] });
    expect(sent.map(({ body }) => body)).toEqual([
      { playlist: 'PLharbourlight-boats', onQuota: 'pause', kinds: 'video', match: 'first', chunkSeconds: 60 },
      { videos: ['hl-dinghy__'], onQuota: 'pause' },
    ]);
  });
});

describe('waiting for a job', () => {
  it('reads the job when the service says, and resolves with the finished job', async () => {
    const { client, pauses } = clientOf(
      json({ ...JOB, state: 'queued', checkAgainSeconds: 2 }),
      json(JOB),
      json(FINISHED),
    );
    const states: string[] = [];
    const onProgress = ({ state }: Job): void => void states.push(state);
    expect(await client.jobs.waitFor(JOB.id, { onProgress })).toEqual(FINISHED);
    expect(pauses).toEqual([2, 7]);
    expect(states).toEqual(['queued', 'running', 'completed']);
  });

  it('outlasts failures that pass, and waits at least as long as the service says', async () => {
    const { client, pauses } = clientOf(unavailable(31), lost, unavailable(), json(FINISHED));
    expect(await client.jobs.waitFor(JOB.id)).toEqual(FINISHED);
    expect(pauses).toEqual([31, 4, 8]);
  });

  it('throws what a retry cannot remedy at once, and a failure that lasts in the end, after three minutes', async () => {
    const unknown = clientOf(refusal(404, 'job_not_found', false));
    await expect(unknown.client.jobs.waitFor(JOB.id)).rejects.toMatchObject({ code: 'job_not_found' });
    expect(unknown.pauses).toEqual([]);
    const lasting = clientOf(unavailable(5));
    await expect(lasting.client.jobs.waitFor(JOB.id)).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(lasting.pauses).toEqual([5, 5, 8, 16, 32, 60, 60]);
  });
});

describe('the results of a job that runs', () => {
  /** A job whose videos are decided in steps; `decided` grows with each pause. */
  function service(total: number, steps: readonly number[], pageSize: number, failEvery: number) {
    let [decided, requests] = [0, 0];
    const remaining = [...steps];
    const answer = ({ path }: SentRequest): Response => {
      const after = Number(new URLSearchParams(path.split('?')[1]).get('after') ?? 0);
      requests += 1;
      if (failEvery > 0 && requests % failEvery === 0) return unavailable(1);
      const end = Math.min(decided, after + pageSize);
      const positions = Array.from({ length: Math.max(0, end - after) }, (_, index) => after + index + 1);
      const isFinished = decided === total;
      return json({
        results: positions.map(entryOf),
        next: isFinished && end === total ? null : Math.max(after, end),
        job: isFinished ? FINISHED : JOB,
      });
    };
    const wait = (): Promise<void> => {
      decided = Math.min(total, decided + (remaining.shift() ?? total));
      return Promise.resolve();
    };
    return new ChannelTranscriptsClient(scripted(answer).options, wait).jobs;
  }

  it('are complete, in order and without repetition, however they arrive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(60),
        fc.array(fc.nat(20), { maxLength: 8 }),
        fc.integer({ min: 1, max: 25 }),
        fc.constantFrom(0, 2, 3),
        async (total, steps, pageSize, failEvery) => {
          const jobs = service(total, steps, pageSize, failEvery);
          const read: string[] = [];
          for await (const { videoId } of jobs.results(JOB.id)) read.push(videoId);
          expect(read).toEqual(Array.from({ length: total }, (_, index) => `video-${index + 1}`));
        },
      ),
    );
  });

  it('begin after a position, and return the finished job', async () => {
    const jobs = service(5, [5], 2, 0);
    const following = jobs.results(JOB.id, { after: '3' });
    expect(await following.next()).toMatchObject({ value: { videoId: 'video-4' } });
    expect(await following.next()).toMatchObject({ value: { videoId: 'video-5' } });
    expect(await following.next()).toEqual({ done: true, value: FINISHED });
  });
});
