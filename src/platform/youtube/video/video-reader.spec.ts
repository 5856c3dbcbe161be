import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import { Environment, type YoutubeClient } from '../../../config/environment.js';
import { FairLimiter } from '../egress/fair-limiter.js';
import type { UpstreamResponse } from '../egress/upstream-response.js';
import type { InnertubeCall } from '../innertube/clients.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { SignatureTimestamp, WebProofs } from '../po-token/web-proofs.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ClientOrder } from './client-order.js';
import { VideoReader } from './video-reader.js';

Logger.overrideLogger(false);

const VIDEO = 'aaaaaaaaaaa';
const videoDetails = { videoId: VIDEO, lengthSeconds: '60' };
const track = (languageCode: string) => ({
  baseUrl: `https://www.youtube.com/api/timedtext?v=${VIDEO}&lang=${languageCode}`,
  languageCode,
  name: { simpleText: languageCode },
});
const listing = (...languages: string[]) => ({
  playabilityStatus: { status: 'OK' },
  videoDetails,
  captions: { playerCaptionsTracklistRenderer: { captionTracks: languages.map(track) } },
});
const WITHOUT_CAPTIONS = { playabilityStatus: { status: 'OK' }, videoDetails };
const ERROR = { playabilityStatus: { status: 'ERROR', reason: 'Video unavailable' } };
const UNPLAYABLE = { playabilityStatus: { status: 'UNPLAYABLE', reason: 'This video is unavailable' } };

const TEXT: UpstreamResponse = {
  kind: 'ok',
  media: 'xml',
  body: '<transcript><text start="0" dur="1">Hello</text></transcript>',
};

/** The reader over clients whose player responses are given; the others respond with 500. */
function reading(players: Partial<Record<YoutubeClient, unknown>>, captions: UpstreamResponse = TEXT) {
  const environment = new Environment();
  const registry = new Registry();
  const asked: YoutubeClient[] = [];
  const innertube: InnertubeClient = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: ({ client }: InnertubeCall, parse: (response: unknown, visitor: object) => unknown) => {
      asked.push(client);
      const response = players[client];
      if (response === undefined) return Promise.resolve({ kind: 'http-error', status: 500, media: 'json' });
      return Promise.resolve({ kind: 'parsed', value: parse(response, { sent: null, offered: null }) });
    },
    fetchText: () => Promise.resolve(captions),
    replaceVisitorData: () => false,
  });
  const metrics = new UpstreamMetrics(registry, new FairLimiter(1), environment);
  const order = new ClientOrder(environment, registry);
  const timestamp = new SignatureTimestamp(innertube);
  const reader = new VideoReader(innertube, order, new WebProofs(null, timestamp, metrics), metrics);
  const egress = nextEgress();
  const read = async (languages: readonly string[] = []) => {
    asked.length = 0;
    return (await reader.read(VIDEO, languages, newScope({}, egress))).result;
  };
  return { players, asked, read };
}

describe('a video of which one client listed tracks whose text was not served', () => {
  const failures: [string, UpstreamResponse, string][] = [
    ['timed out', { kind: 'timeout' }, 'upstream_timeout'],
    ['was a 500', { kind: 'http-error', status: 500, media: 'html' }, 'upstream_failure'],
    ['was unreadable', { kind: 'ok', media: 'other', body: 'Hello' }, 'upstream_failure'],
    ['was not reached', { kind: 'network', cause: new Error('reset') }, 'upstream_failure'],
  ];
  const others: [string, unknown, readonly string[]][] = [
    ['ERROR', ERROR, []],
    ['UNPLAYABLE', UNPLAYABLE, []],
    ['no captions', WITHOUT_CAPTIONS, []],
    ['other languages', listing('de'), ['en']],
  ];
  const cases = failures.flatMap(([failure, captions, code]) =>
    others.map(([report, other, languages]) => ({ failure, captions, code, report, other, languages })),
  );

  it.each(cases)('that $failure: $code, also when the others report $report', async (given) => {
    const { captions, code, other, languages } = given;
    const players = { ANDROID: other, IOS: other, ANDROID_REEL: { playerResponse: other }, ANDROID_VR: other };
    const { read } = reading({ VISIONOS: listing('en', 'de'), ...players }, captions);
    expect(await read(languages)).toMatchObject({ ok: false, failure: { code } });
  });
});

describe('a video that two clients report as unavailable', () => {
  const aged = { VISIONOS: ERROR, ANDROID: ERROR };

  it('is read by the next client while neither was served recently: their versions may be retired', async () => {
    const { read, asked } = reading({ ...aged, IOS: listing('en') });
    expect(await read()).toMatchObject({ ok: true });
    expect(asked).toEqual(['VISIONOS', 'ANDROID', 'IOS']);
  });

  it('is unconfirmed when no client was served recently, although all were asked', async () => {
    const { read, asked } = reading({ ...aged, IOS: ERROR, ANDROID_REEL: {}, ANDROID_VR: ERROR });
    expect(await read()).toMatchObject({ failure: { code: 'video_unavailable' }, confirmed: false });
    expect(asked).toEqual(['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR']);
  });

  it('is confirmed by two requests after the first client was served', async () => {
    const { read, asked, players } = reading({ VISIONOS: listing('en') });
    expect(await read()).toMatchObject({ ok: true });
    Object.assign(players, aged);
    const outcome = await read();
    expect(outcome).toMatchObject({ failure: { code: 'video_unavailable' } });
    expect(outcome).not.toHaveProperty('confirmed');
    expect(asked).toEqual(['VISIONOS', 'ANDROID']);
  });
});
