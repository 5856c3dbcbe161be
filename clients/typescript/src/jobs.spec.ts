import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ChannelTranscriptsError } from './errors.js';
import { followResults, waitForJob, type Job, type JobResults, type VideoTranscript } from './jobs.js';
import { pause } from './poll.js';

const JOB: Job = {
  id: 'job_3VqTb8yWm2LkR0sXcE9a1D',
  state: 'running',
  reason: null,
  channel: null,
  request: { channel: '@tidewater', languages: [], limit: null, since: null, onQuota: 'pause' },
  summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 },
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

const unavailable = (retryAfterSeconds?: number): ChannelTranscriptsError =>
  new ChannelTranscriptsError('Unavailable.', 503, 'service_unavailable', true, undefined, retryAfterSeconds, {});
const notFound = new ChannelTranscriptsError('Job not found.', 404, 'job_not_found', false, undefined, undefined, {});

/** Responds with one step after another; the last one is repeated. */
function responses<T>(...steps: (T | Error)[]): () => Promise<T> {
  return () => {
    const step = steps.length > 1 ? steps.shift() : steps[0];
    if (step === undefined) throw new Error('No response is left.');
    if (step instanceof Error) return Promise.reject(step);
    return Promise.resolve(step);
  };
}

/** Waits for nothing and records the seconds. */
function recordedPauses(): { pauses: number[]; wait: (seconds: number) => Promise<void> } {
  const pauses: number[] = [];
  return { pauses, wait: (seconds) => Promise.resolve(void pauses.push(seconds)) };
}

describe('waitForJob', () => {
  it('reads the job when the service says, and resolves with the finished job', async () => {
    const { pauses, wait } = recordedPauses();
    const states: string[] = [];
    const get = responses<Job>({ ...JOB, state: 'queued', checkAgainSeconds: 2 }, JOB, FINISHED);
    const onProgress = ({ state }: Job): void => void states.push(state);
    expect(await waitForJob({ get }, JOB.id, { onProgress }, wait)).toBe(FINISHED);
    expect(pauses).toEqual([2, 7]);
    expect(states).toEqual(['queued', 'running', 'completed']);
  });

  it('outlasts failures that pass, and waits at least as long as the service says', async () => {
    const { pauses, wait } = recordedPauses();
    const get = responses<Job>(unavailable(31), new TypeError('fetch failed'), unavailable(), FINISHED);
    expect(await waitForJob({ get }, JOB.id, {}, wait)).toBe(FINISHED);
    expect(pauses).toEqual([31, 4, 8]);
  });

  it('throws what a retry cannot remedy at once, and a lasting failure in the end', async () => {
    const { pauses, wait } = recordedPauses();
    await expect(waitForJob({ get: responses<Job>(notFound) }, JOB.id, {}, wait)).rejects.toBe(notFound);
    expect(pauses).toEqual([]);
    const lasting = unavailable();
    await expect(waitForJob({ get: responses<Job>(lasting) }, JOB.id, {}, wait)).rejects.toBe(lasting);
    expect(pauses).toEqual([2, 4, 8, 16, 32, 60, 60]);
  });

  it('outlasts three minutes of an unavailable service, also when each refusal asks for a short pause', async () => {
    const { pauses, wait } = recordedPauses();
    await expect(waitForJob({ get: responses<Job>(unavailable(5)) }, JOB.id, {}, wait)).rejects.toThrow('Unavailable.');
    expect(pauses).toEqual([5, 5, 8, 16, 32, 60, 60]);
  });

  it('ends with the reason of its signal', async () => {
    const leaving = new AbortController();
    const waiting = waitForJob({ get: responses(JOB) }, JOB.id, {
      signal: leaving.signal,
      onProgress: () => setTimeout(() => leaving.abort(), 0),
    });
    await expect(waiting).rejects.toThrow(/abort/i);
    await expect(pause(60, AbortSignal.abort())).rejects.toThrow(/abort/i);
  });
});

describe('the results of a job that runs', () => {
  /** A job whose videos are decided in steps; `decided` grows with each pause. */
  function service(total: number, steps: readonly number[], pageSize: number, failEvery: number) {
    let [decided, requests] = [0, 0];
    const remaining = [...steps];
    const results = (_id: string, { after = 0 }: { after?: number } = {}): Promise<JobResults> => {
      requests += 1;
      if (failEvery > 0 && requests % failEvery === 0) return Promise.reject(unavailable(1));
      const end = Math.min(decided, after + pageSize);
      const positions = Array.from({ length: Math.max(0, end - after) }, (_, index) => after + index + 1);
      const isFinished = decided === total;
      return Promise.resolve({
        results: positions.map(entryOf),
        next: isFinished && end === total ? null : Math.max(after, end),
        job: isFinished ? FINISHED : JOB,
      });
    };
    const wait = (): Promise<void> => {
      decided = Math.min(total, decided + (remaining.shift() ?? total));
      return Promise.resolve();
    };
    return { results, wait };
  }

  it('are complete, in order and without repetition, however they arrive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(60),
        fc.array(fc.nat(20), { maxLength: 8 }),
        fc.integer({ min: 1, max: 25 }),
        fc.constantFrom(0, 2, 3),
        async (total, steps, pageSize, failEvery) => {
          const { results, wait } = service(total, steps, pageSize, failEvery);
          const read: string[] = [];
          for await (const { videoId } of followResults({ results }, JOB.id, {}, wait)) read.push(videoId);
          expect(read).toEqual(Array.from({ length: total }, (_, index) => `video-${index + 1}`));
        },
      ),
    );
  });

  it('begin after a position, and return the finished job', async () => {
    const { results, wait } = service(5, [5], 2, 0);
    const following = followResults({ results }, JOB.id, { after: 3 }, wait);
    expect(await following.next()).toMatchObject({ value: { videoId: 'video-4' } });
    expect(await following.next()).toMatchObject({ value: { videoId: 'video-5' } });
    expect(await following.next()).toEqual({ done: true, value: FINISHED });
  });
});
