import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { channelPage } from '../../../../test/pages/youtube-pages.js';
import { newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import { Experiment } from '../egress/experiment.js';
import { RequestQueue } from '../egress/request-queue.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import type { InnertubeQuery } from '../innertube/clients.js';
import { InnertubeClient, parsed } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ControlChannels } from './channel-reader.js';

Logger.overrideLogger(false);

const REFUSED: FailedResponse = { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null };
const TIMEOUT: FailedResponse = { kind: 'timeout' };
const BROKEN: FailedResponse = { kind: 'http-error', status: 500, media: 'json' };

/** The control of lists, whose requests get these responses in turn; null for the page of a channel. */
function newChannelControl(...responses: (FailedResponse | null)[]) {
  const asked: unknown[] = [];
  const innertube = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: ({ payload }: InnertubeQuery, parse: (page: unknown) => unknown, { attempt }: RequestScope) => {
      attempt.sentAtMs = performance.now();
      const response = responses[asked.push(payload['browseId']) - 1] ?? null;
      return Promise.resolve(response ?? parsed(() => parse(channelPage())));
    },
  });
  const channel = new ControlChannels(innertube);
  const metrics = new UpstreamMetrics(new Registry(), new RequestQueue(1));
  const experiment = new Experiment({ channel, video: channel }, metrics);
  const egress = nextEgress(undefined, 'channel');
  const settle = () => {
    const doubt = { kind: 'list', client: null, sinceMs: performance.now() } as const;
    return experiment.settle(doubt, 'WEB', newScope({}, egress));
  };
  return { settle, probe: () => experiment.probe(egress, 'list'), asked, line: egress.uses.channel.line };
}

describe('the control of lists', () => {
  it.each<[string, (FailedResponse | null)[], string, number]>([
    ['the channel is at fault when one that exists is served', [null], 'served', 1],
    ['one of the two that are asked may have ended', [REFUSED, null], 'served', 2],
    ['the address is refused when both are', [REFUSED, REFUSED], 'address-refused', 2],
    ['nothing is known when the control fails', [BROKEN], 'unknown', 1],
    ['nothing is known when the second one is not reached', [REFUSED, TIMEOUT], 'unknown', 2],
  ])('finds out that %s', async (_, responses, finding, requests) => {
    const { settle, asked, line } = newChannelControl(...responses);
    expect(await settle()).toBe(finding);
    expect(new Set(asked).size).toBe(requests);
    expect(line.refusedKind).toBe(finding === 'address-refused' ? 'list' : null);
  });

  it('is one for all who doubt at a time', async () => {
    const { settle, asked } = newChannelControl();
    expect(await Promise.all([settle(), settle(), settle()])).toEqual(['served', 'served', 'served']);
    expect(asked).toHaveLength(1);
  });

  it.each([
    [null, 'served'],
    [REFUSED, 'refused'],
    [TIMEOUT, 'unreached'],
    [BROKEN, 'unknown'],
  ])('at the end of a pause is one request: with %j it is %s', async (response, end) => {
    const { probe, asked } = newChannelControl(response);
    expect([await probe(), asked.length]).toEqual([end, 1]);
  });
});
