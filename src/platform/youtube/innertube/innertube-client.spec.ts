import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { newScope } from '../../../../test/youtube/egresses.js';
import { Environment } from '../../../config/environment.js';
import { type PendingRequest, RequestPipeline } from '../egress/request-pipeline.js';
import { RequestQueue } from '../egress/request-queue.js';
import { RetryBudget } from '../egress/attempt.js';
import type { UpstreamResponse } from '../egress/upstream-response.js';
import { IncompletePageError } from '../response-parsing.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import type { InnertubeQuery } from './clients.js';
import { InnertubeClient } from './innertube-client.js';
import { WebVersion } from './web-version.js';

Logger.overrideLogger(false);

const HOUR_MS = 3_600_000;
const OK: UpstreamResponse = { kind: 'ok', media: 'json', body: '{}', json: {} };
const REJECTED: UpstreamResponse = { kind: 'http-error', status: 400, media: 'json' };

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  // The cache takes the time 0 for none.
  jest.advanceTimersByTime(1);
});
afterEach(() => {
  jest.useRealTimers();
});

/** A client whose requests are answered so; each read returns how they were sent. */
function clientOf(
  answer: (isMasked: boolean) => UpstreamResponse,
  ask = (innertube: InnertubeClient, query: InnertubeQuery): Promise<unknown> =>
    innertube.query(query, () => 'read', newScope()),
) {
  const sent: string[] = [];
  const pipeline = Object.assign(Object.create(RequestPipeline.prototype) as RequestPipeline, {
    send: ({ kind, outgoing: { url } }: PendingRequest) => {
      if (kind === 'visitor') return Promise.resolve<UpstreamResponse>({ kind: 'timeout' });
      const isMasked = url.searchParams.has('$fields');
      sent.push(isMasked ? 'masked' : 'whole');
      return Promise.resolve(answer(isMasked));
    },
  });
  const metrics = new UpstreamMetrics(new Registry(), new RequestQueue(1));
  const innertube = new InnertubeClient(pipeline, metrics, new WebVersion(), new Environment());
  const call = { kind: 'player', client: 'VISIONOS', path: 'player', payload: {}, fields: 'videoDetails' } as const;
  return async () => {
    sent.length = 0;
    await ask(innertube, call);
    return [...sent];
  };
}

describe('a field mask', () => {
  it('is not sent when an incomplete page is asked for again, and is not at fault when that page is whole', async () => {
    const page: UpstreamResponse = { kind: 'ok', media: 'json', body: '{"alerts":[]}', json: { alerts: [] } };
    const parse = (json: unknown) => {
      if (!(typeof json === 'object' && json !== null && 'alerts' in json)) throw new IncompletePageError('alerts');
      return 'read';
    };
    const read = clientOf(
      (isMasked) => (isMasked ? OK : page),
      (innertube, query) => innertube.queryWhole(query, parse, { ...newScope(), budget: new RetryBudget(1) }),
    );
    expect([await read(), await read()]).toEqual([
      ['masked', 'whole'],
      ['masked', 'whole'],
    ]);
  });

  it('that is refused is not sent for an hour', async () => {
    const read = clientOf((isMasked) => (isMasked ? REJECTED : OK));
    expect([await read(), await read()]).toEqual([['masked', 'whole'], ['whole']]);
    jest.advanceTimersByTime(HOUR_MS + 2);
    expect([await read(), await read()]).toEqual([['masked', 'whole'], ['whole']]);
  });

  it('is suspected once an hour when the request is refused without it too', async () => {
    const read = clientOf(() => REJECTED);
    expect([await read(), await read()]).toEqual([['masked', 'whole'], ['masked']]);
    jest.advanceTimersByTime(HOUR_MS + 2);
    expect(await read()).toEqual(['masked', 'whole']);
  });
});
