import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { EgressPool } from '../egress/egress-pool.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import { requestScope } from '../egress/request-scope.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { ChannelReader } from './channel-reader.js';
import { UploadsReader } from './uploads-reader.js';

const CHANNEL_ID = `UC${'c'.repeat(22)}`;

/**
 * The reader over a platform that responds to every request with an error.
 *
 * @param ofUrl the response to the URL of a channel, or its status, if it is another one
 */
function readerOf(status: number, media: 'json' | 'html', ofUrl: number | FailedResponse = status) {
  const requested: string[] = [];
  const innertube = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: ({ kind }: { kind: string }) => {
      requested.push(kind);
      const response = kind === 'resolve' ? ofUrl : status;
      return Promise.resolve(typeof response === 'number' ? { kind: 'http-error', status: response, media } : response);
    },
  });
  const egresses = new EgressPool({ registry: new Registry(), proxyUrls: [], connectionsMax: 1, connectTimeoutMs: 1 });
  const taken = egresses.take('channel');
  if (!taken) throw new Error('There is no egress.');
  const caller = { signal: new AbortController().signal, deadlineAtMs: performance.now() + 60_000, fairnessKey: {} };
  const scope = requestScope(taken.egress, taken.admission, caller, 0);
  const reader = new ChannelReader(innertube, Object.create(UploadsReader.prototype) as UploadsReader);
  return {
    resolve: () => reader.resolve({ kind: 'handle', handle: 'somebody' }, scope),
    read: () => reader.read(CHANNEL_ID, scope),
    requested,
  };
}

describe('ChannelReader', () => {
  it.each([
    [404, 'json', 'channel_not_found', 'channel_not_found'],
    // A version of WEB that is no longer served gets 400 for everything.
    [400, 'json', 'upstream_failure', 'upstream_failure'],
    [404, 'html', 'upstream_failure', 'upstream_failure'],
    [400, 'html', 'upstream_failure', 'upstream_failure'],
    [500, 'json', 'upstream_failure', 'upstream_failure'],
  ] as const)('%d with %s is %s for a name and %s for an ID', async (status, media, ofName, ofId) => {
    const { resolve, read } = readerOf(status, media);
    await expect(resolve()).rejects.toMatchObject({ code: ofName });
    await expect(read()).rejects.toMatchObject({ code: ofId });
  });

  it('believes a 400 for an ID when the version of WEB is served, which it checks once', async () => {
    const { read, requested } = readerOf(400, 'json', 404);
    for (let time = 0; time < 2; time += 1) await expect(read()).rejects.toMatchObject({ code: 'channel_not_found' });
    expect(requested).toEqual(['channel', 'resolve', 'channel']);
  });

  const failed: [FailedResponse, string, object][] = [
    [
      { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 7 },
      'upstream_blocked',
      { verdict: 'refused', retryAfterSeconds: 7 },
    ],
    [{ kind: 'timeout' }, 'upstream_timeout', { verdict: 'nothing' }],
    [{ kind: 'network', cause: new Error('reset') }, 'upstream_failure', { verdict: 'unreached' }],
    [{ kind: 'http-error', status: 500, media: 'html' }, 'upstream_failure', { verdict: 'nothing' }],
  ];
  it.each(failed)('a 400 for an ID whose check has the response %j is %s', async (check, code, cause) => {
    await expect(readerOf(400, 'json', check).read()).rejects.toMatchObject({ code, cause });
  });
});
