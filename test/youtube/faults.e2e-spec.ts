import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import { FAULT_KINDS, type FaultKind } from '../fake-youtube/faults/fault-registry.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import type { Environment } from '../../src/config/environment.js';
import type { Upload, VideoOutcome } from '../../src/domain/transcript.js';
import { REAL_RETRY_ENVIRONMENT } from '../../src/platform/youtube/egress/request-pipeline.js';
import { type Adapter, context, end, listUploads, openAdapter } from './adapter.js';
import { measureInTime } from '../harness/until.js';
import { REPORTED_AS } from './reported-codes.js';

const DEADLINE_SECONDS = 60;
/** Short timeouts apply only to faults that delay responses: on a busy machine they would abort others, too. */
function choicesFor(kind: FaultKind, delayedTimeoutSeconds: number): Partial<Environment> {
  return {
    UPSTREAM_RETRIES: 1,
    UPSTREAM_TIMEOUT_SECONDS: REPORTED_AS[kind] === 'upstream_timeout' ? delayedTimeoutSeconds : 15,
  };
}

let fakeYoutube: FakeYoutube;
let adapter: Adapter;
/** The outcome of each video without any fault. */
let truth: Map<string, string>;
let listed: string[];
const withToken = new Set(
  HARBOUR_LIGHT.uploads()
    .filter(({ tracks }) => tracks.some(({ tokenNeed }) => tokenNeed))
    .map(({ id }) => id),
);

beforeAll(async () => {
  const real = { ...REAL_RETRY_ENVIRONMENT };
  // Retries wait for a tenth of their time.
  jest.spyOn(REAL_RETRY_ENVIRONMENT, 'sleep').mockImplementation((ms, signal) => real.sleep(ms / 10, signal));
  fakeYoutube = await startFakeYoutube({ seed: 11 });
  adapter = await openAdapter(fakeYoutube.url);
  const { uploads } = await listUploads(adapter.platform, HARBOUR_LIGHT.id, 100);
  listed = uploads.map(({ videoId }) => videoId);
  truth = new Map(
    (await readAll(HARBOUR_LIGHT.uploads().map(({ id }) => id))).map((video) => [video[0], report(video[1])]),
  );
  await adapter.close();
});

afterEach(() => adapter.close());
afterAll(async () => {
  jest.restoreAllMocks();
  await fakeYoutube.close();
});

/** The code, or the whole text, so that a wrong or a shortened one shows. */
function report(outcome: VideoOutcome): string {
  return outcome.ok ? JSON.stringify([...outcome.transcript]) : end(outcome);
}

function readAll(ids: readonly string[]): Promise<[string, VideoOutcome][]> {
  const call = context({ deadlineAtMs: performance.now() + DEADLINE_SECONDS * 1_000 });
  return Promise.all(
    ids.map(async (id): Promise<[string, VideoOutcome]> => [id, await adapter.platform.readVideo(id, [], call)]),
  );
}

async function begin(kind: FaultKind, rate: number, delayedTimeoutSeconds = rate === 1 ? 0.1 : 0.25): Promise<void> {
  fakeYoutube.reset();
  fakeYoutube.setFaults({ kind, rate, retryAfterSeconds: 1 });
  adapter = await openAdapter(fakeYoutube.url, choicesFor(kind, delayedTimeoutSeconds));
}

/** When every request fails, the videos differ in nothing; each request of some faults transfers megabytes. */
function idsFor(kind: FaultKind, rate: number): string[] {
  const ids = [...truth.keys()];
  if (kind === 'huge' && rate === 1) return ids.slice(0, 1);
  if (kind === 'huge') return ids.slice(0, 3);
  return rate === 1 ? ids.slice(0, 8) : ids;
}

/*
 * An unhandled rejection fails the test that runs meanwhile: that is jest's own doing.
 */
describe.each(FAULT_KINDS.map((kind) => [kind, REPORTED_AS[kind]] as const))('%s', (kind, code) => {
  it(`on every request: every video is ${code}`, async () => {
    await begin(kind, 1);
    const outcomes = await readAll(idsFor(kind, 1));
    // Two bytes arrive soon even when they drip: their information about a deleted video is correct.
    const dripped = kind === 'slow-drip' ? ['video_unavailable'] : [];
    for (const [id, outcome] of outcomes) {
      if (dripped.includes(end(outcome))) expect(end(outcome)).toBe(truth.get(id));
      else expect([id, end(outcome)]).toEqual([id, code]);
    }
    expect(adapter.logged.filter(({ event }) => event === 'youtube_internal_error')).toEqual([]);
  });

  it('on a fifth of the requests: every video has its own outcome or that of the fault, and no text is truncated or missing', async () => {
    let timeoutSeconds = 0.25;
    const measure = async (): Promise<[string, VideoOutcome][]> => {
      if (timeoutSeconds > 0.25) await adapter.close();
      await begin(kind, 0.2, timeoutSeconds);
      timeoutSeconds *= 4;
      return readAll(idsFor(kind, 0.2));
    };
    const { last: outcomes } = await measureInTime(measure, (all) => all.some(([, outcome]) => outcome.ok));
    const wrong = outcomes.filter(([id, outcome]) => {
      const reported = end(outcome);
      // A text that one client withholds and the others cannot request is blocked.
      const gated = reported === 'upstream_blocked' && withToken.has(id);
      return reported !== code && !gated && report(outcome) !== truth.get(id);
    });
    expect(wrong).toEqual([]);
    expect(outcomes.some(([, outcome]) => outcome.ok)).toBe(true);
    expect(adapter.logged.filter(({ event }) => event === 'youtube_internal_error')).toEqual([]);
  });

  it.each([1, 0.2])('on %d of the requests: a channel has its own outcome or that of the fault', async (rate) => {
    await begin(kind, rate);
    const { platform } = adapter;
    const call = context({ deadlineAtMs: performance.now() + DEADLINE_SECONDS * 1_000 });
    const ends = await Promise.allSettled([
      platform.resolveChannel({ kind: 'handle', handle: 'harbourlight' }, call),
      platform.readChannel(HARBOUR_LIGHT.id, call).then(({ handle }) => handle),
      listUploads(platform, HARBOUR_LIGHT.id, 100, call).then(({ uploads }) =>
        uploads.map((upload: Upload) => upload.videoId),
      ),
    ]);
    const reported = ends.map((each) =>
      each.status === 'fulfilled' ? each.value : (each.reason as { code: string }).code,
    );
    const right = [HARBOUR_LIGHT.id, HARBOUR_LIGHT.handle, listed];
    // These responses exist for video requests only.
    if (kind === 'bot-check') expect(reported).toEqual(right);
    else if (rate === 1) expect(reported).toEqual([code, code, code]);
    else reported.forEach((each, index) => expect([code, right[index]]).toContainEqual(each));
  });
});
