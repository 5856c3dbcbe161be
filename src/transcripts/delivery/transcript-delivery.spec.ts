import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Registry } from 'prom-client';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { Environment } from '../../config/environment.js';
import { NO_DETAILS, unlistedVideo, type Includable } from '../../domain/transcript.js';
import { Call } from '../call.js';
import type { VideoFetcher } from './video-fetcher.js';
import { HeldTexts, ResponseMemory } from './response-memory.js';
import { Delivery, inOrderOfCompletion, type DeliveryRules } from './transcript-delivery.js';
import type { CallPlan } from '../call-plan.js';

Logger.overrideLogger(false);

const TEXT = { deflated: Buffer.alloc(1_000), jsonBytes: 1, crc32: 1 };

const fetcher: ConstructorParameters<typeof Delivery>[1] = {
  fetch({ videoId }, _plan, { signal, onRequest }): ReturnType<VideoFetcher['fetch']> {
    if (videoId === 'faulty') return Promise.reject(new TypeError('a bug'));
    if (videoId.startsWith('fetched'))
      return Promise.resolve({ outcome: { ok: true, details: NO_DETAILS, transcript: TEXT, tracks: {} }, own: true });
    if (videoId === 'sent') onRequest?.();
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  },
};

const memory = new ResponseMemory(new Environment(), new Registry());
const calls: Call[] = [];

afterEach(() => calls.splice(0).forEach((call) => call.finish()));

function deliver(
  videoIds: readonly string[],
  options: ConstructorParameters<typeof Call>[1] = {},
  held = new HeldTexts(memory, 'org'),
  onBug: DeliveryRules['onBug'] = (_upload, error) => {
    throw error;
  },
  include: Includable[] = [],
): { delivery: Delivery; call: Call; fetched: Promise<number> } {
  const call = new Call(60, options);
  calls.push(call);
  const cached = { ok: true, details: NO_DETAILS, transcript: TEXT, tracks: {} } as const;
  const outcomeOf = (id: string) => (id === 'cached' ? cached : undefined);
  const known = new Map(videoIds.map((id) => [id, { upload: unlistedVideo(id), outcome: outcomeOf(id) }]));
  held.addCached(videoIds.includes('cached') ? [TEXT.deflated] : []);
  const order = videoIds.flatMap((id) => known.get(id) ?? []);
  const plan = { call, header: { type: 'videos' }, videos: [...known.values()], order, languages: [], include, held };
  let charged = 0;
  const settle = (count: number): Promise<void> => {
    charged = count;
    return Promise.resolve();
  };
  const delivery = new Delivery(plan as unknown as CallPlan, fetcher, { settle, onEntry: () => undefined, onBug });
  const fetched = delivery.start().then(() => charged);
  return { delivery, call, fetched };
}

async function codesOf({ delivery }: { delivery: Delivery }): Promise<unknown[]> {
  const codes: unknown[] = [];
  for await (const event of delivery.events('listed'))
    if (event.type === 'result') codes.push(event.entry.ok || [event.entry.videoId, event.entry.error.code]);
  return codes;
}

describe('the delivery of a job', () => {
  it('separates the videos that were not requested from those for which a request was sent', async () => {
    const started = deliver(['queued', 'sent'], { background: true });
    await Promise.resolve();
    started.call.disconnect();
    expect(await codesOf(started)).toEqual([
      ['queued', 'upstream_timeout'],
      ['sent', 'upstream_timeout'],
    ]);
    expect([...started.delivery.givenUp]).toEqual(['queued']);
  });

  it('fails only the video with which the service has a fault', async () => {
    const failed: DeliveryRules['onBug'] = () => ({ code: 'upstream_failure' });
    const started = deliver(['faulty', 'fetched'], { background: true }, undefined, failed);
    expect(await codesOf(started)).toEqual([['faulty', 'upstream_failure'], true]);
    expect(await started.fetched).toBe(1);
  });

  it('gives the entry of such a video what the call has included', async () => {
    const failed: DeliveryRules['onBug'] = () => ({ code: 'upstream_failure' });
    const { delivery } = deliver(['faulty'], { background: true }, undefined, failed, ['description']);
    const metadata: object[] = [];
    for await (const event of delivery.events('listed'))
      if (event.type === 'result') metadata.push(event.entry.metadata);
    expect(metadata).toMatchObject([{ channel: null, description: null }]);
  });
});

describe('the delivery of a call', () => {
  it('gives way to other work between the entries of cached videos', async () => {
    const { delivery } = deliver(Array<string>(100).fill('cached'));
    const batches = delivery.batches('listed');
    await batches.next();
    const progress = { isRead: false, turns: 0 };
    const reading = batches.next().then(() => (progress.isRead = true));
    for (; !progress.isRead; progress.turns += 1) await new Promise((resolve) => setImmediate(resolve));
    await reading;
    await batches.return();
    expect(progress.turns).toBeGreaterThan(5);
  });

  it('throws a fault in the service to the reader', async () => {
    await expect(codesOf(deliver(['fetched', 'faulty']))).rejects.toThrow('a bug');
  });

  it.each(['listed', 'as-finished'] as const)(
    'charges a video that is listed several times once, and its further entries are cached (%s)',
    async (order) => {
      const { delivery, fetched } = deliver(['fetched-1', 'fetched-2', 'fetched-1', 'fetched-1']);
      const cached: [string, boolean][] = [];
      for await (const event of delivery.events(order))
        if (event.type === 'result' && event.entry.ok) cached.push([event.entry.videoId, event.entry.cached]);
      expect(cached.filter(([, isCached]) => !isCached).sort()).toEqual([
        ['fetched-1', false],
        ['fetched-2', false],
      ]);
      expect(cached.length).toBe(4);
      expect(await fetched).toBe(2);
      expect(delivery.summary).toEqual({ total: 4, succeeded: 4, failed: 0, cached: 2, fetched: 2 });
    },
  );

  it('is charged and holds nothing when its reader leaves before the first event', async () => {
    const { call, fetched } = deliver(['fetched-1', 'queued']);
    await Promise.resolve();
    call.disconnect();
    expect(await fetched).toBe(1);
    expect(memory.heldBytes).toBe(0);
  });

  it('gives up what was not requested when its buffer is full, and nothing else', async () => {
    const held = new HeldTexts(memory, 'org');
    const { delivery, call } = deliver(['fetched', 'queued', 'sent'], {}, held);
    jest.spyOn(held, 'mayFetch', 'get').mockReturnValue(false);
    const codes = codesOf({ delivery });
    await new Promise((resolve) => setImmediate(resolve));
    expect([...delivery.givenUp]).toEqual(['queued']);
    call.disconnect();
    expect(await codes).toEqual([true, ['queued', 'upstream_failure'], ['sent', 'upstream_timeout']]);
  });

  it('holds nothing when its reader has left while it was planned', () => {
    const held = deliver(['cached']);
    expect(memory.heldBytes).toBe(1_000);
    held.call.disconnect();
    deliver(['cached'], { responseEnd: AbortSignal.abort() });
    expect(memory.heldBytes).toBe(0);
  });
});

describe('inOrderOfCompletion', () => {
  it('yields each item once, in the order in which their work ends, awaited or not', async () => {
    const plan = fc
      .integer({ min: 0, max: 12 })
      .chain((count) =>
        fc.record({ order: fc.shuffledSubarray([...Array(count).keys()], { minLength: count }), early: fc.nat(count) }),
      );
    await fc.assert(
      fc.asyncProperty(plan, async ({ order, early }) => {
        const ends = new Map<number, () => void>();
        const work = new Map(order.map((item) => [item, new Promise<void>((resolve) => ends.set(item, resolve))]));
        const given: number[] = [];
        const reading = (async () => {
          for await (const item of inOrderOfCompletion(work)) given.push(item);
        })();
        for (const [index, item] of order.entries()) {
          ends.get(item)?.();
          if (index >= early) await work.get(item);
        }
        await reading;
        expect([...given].sort()).toEqual([...order].sort());
      }),
    );
  });

  it('throws what the work throws', async () => {
    const failing = inOrderOfCompletion(new Map([[1, Promise.reject(new Error('no'))]]));
    await expect(failing.next()).rejects.toThrow('no');
  });
});
