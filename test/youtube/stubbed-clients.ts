import { Registry } from 'prom-client';
import { Environment, type YoutubeClient } from '../../src/config/environment.js';
import { Experiment } from '../../src/platform/youtube/egress/experiment.js';
import { RequestQueue } from '../../src/platform/youtube/egress/request-queue.js';
import type { RequestScope } from '../../src/platform/youtube/egress/request-pipeline.js';
import type { FailedResponse, UpstreamResponse } from '../../src/platform/youtube/egress/upstream-response.js';
import type { InnertubeQuery } from '../../src/platform/youtube/innertube/clients.js';
import { ControlChannels } from '../../src/platform/youtube/channel/channel-reader.js';
import { InnertubeClient, parsed } from '../../src/platform/youtube/innertube/innertube-client.js';
import { WebVersion } from '../../src/platform/youtube/innertube/web-version.js';
import { WebProofs } from '../../src/platform/youtube/video/web-proofs.js';
import { at } from '../../src/platform/youtube/response-parsing.js';
import { UpstreamMetrics } from '../../src/platform/youtube/upstream-metrics.js';
import { ClientOrder } from '../../src/platform/youtube/video/client-order.js';
import { ControlVideos } from '../../src/platform/youtube/video/player-requests.js';
import { VideoReader } from '../../src/platform/youtube/video/video-reader.js';

/** A response of the platform that is not a player response. */
export class Failed {
  constructor(readonly response: FailedResponse) {}
}

const track = (videoId: string, languageCode: string) => ({
  baseUrl: `https://www.youtube.com/api/timedtext?v=${videoId}&lang=${languageCode}`,
  languageCode,
  name: { simpleText: languageCode },
});

/** A player response with tracks in these languages. */
export const listing = (videoId: string, ...languages: string[]) => ({
  playabilityStatus: { status: 'OK' },
  videoDetails: { videoId, lengthSeconds: '60' },
  captions: {
    playerCaptionsTracklistRenderer: { captionTracks: languages.map((language) => track(videoId, language)) },
  },
});

const TEXT: UpstreamResponse = {
  kind: 'ok',
  media: 'xml',
  body: '<transcript><text start="0" dur="1">Hello</text></transcript>',
};

/** The platform: what it answers to a client about a video; undefined for what is served. */
export interface StubbedPlatform {
  player?: (client: YoutubeClient, videoId: string) => unknown;
  text?: (client: YoutubeClient, videoId: string) => UpstreamResponse | undefined;
  /** What its responses issue. */
  visitorData?: string;
}

/** The reader, the controls and the experiment of videos over clients whose responses are given, and which requests were sent, in order. */
export function newReader(platform: StubbedPlatform = {}, settings: Partial<Environment> = {}) {
  const environment = Object.assign(new Environment(), settings);
  const registry = new Registry();
  const asked: string[] = [];
  const sent = ({ attempt }: RequestScope) => {
    attempt.started = true;
    attempt.sentAtMs = performance.now();
  };
  const innertube: InnertubeClient = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: (query: InnertubeQuery, parse: (response: unknown, visitor: object) => unknown, scope: RequestScope) => {
      sent(scope);
      const { client, payload } = query;
      const videoId = String(payload['videoId'] ?? at(payload['playerRequest'], 'videoId'));
      asked.push(`${client} ${videoId}`);
      const response = platform.player?.(client, videoId) ?? listing(videoId, 'en');
      if (response instanceof Failed) return Promise.resolve(response.response);
      const isEmpty = client === 'ANDROID_REEL' && Object.keys(response).length === 0;
      const body = client === 'ANDROID_REEL' && !isEmpty ? { playerResponse: response } : response;
      return Promise.resolve(parsed(() => parse(body, { sent: null, offered: platform.visitorData ?? null })));
    },
    fetchText: (_kind: string, client: YoutubeClient, url: URL, scope: RequestScope) => {
      sent(scope);
      return Promise.resolve(platform.text?.(client, url.searchParams.get('v') ?? '') ?? TEXT);
    },
    replaceVisitorData: () => false,
  });
  const metrics = new UpstreamMetrics(registry, new RequestQueue(1));
  const order = new ClientOrder(environment, registry, new WebVersion());
  const controls = new ControlVideos(innertube, order);
  const experiment = new Experiment({ video: controls, channel: new ControlChannels(innertube) }, metrics);
  const webProofs = new WebProofs(environment, innertube, metrics);
  const reader = new VideoReader(innertube, order, webProofs, experiment, metrics);
  return { reader, experiment, order, asked };
}
