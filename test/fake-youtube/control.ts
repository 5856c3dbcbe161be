import type { IncomingMessage, ServerResponse } from 'node:http';
import { CHANNELS } from './catalogue/catalogue.js';
import { GENERATED_FORMS } from './catalogue/generated-channels.js';
import { PLAYLISTS } from './catalogue/playlists.js';
import type { Fault } from './faults/fault-registry.js';
import {
  type ChannelChange,
  type Publication,
  UnknownNameError,
  type VideoChange,
} from './publish/current-catalogue.js';
import { readChannelChange, readPublication, readVideoChange } from './publish/publish-requests.js';
import { VIDEO_STATES } from './publish/published-video.js';
import type { RecordedRequest, RequestLog } from './request-log.js';
import { sendText } from './rendered-bodies.js';
import { readChanges, type Settings, UnreadableError } from './settings.js';

/** What the control pages of a running fake YouTube use. */
export interface Controls {
  requests: RequestLog;
  setFaults(...faults: Fault[]): void;
  set(settings: Partial<Settings>): void;
  publish(publication: Publication): string[];
  changeVideos(change: VideoChange): void;
  changeChannel(change: ChannelChange): void;
  reset(): void;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const COUNTED = ['kind', 'client', 'videoId'] as const;

/** Whether a path is one of the fake YouTube's own control pages, which are not recorded, delayed or subject to faults. */
export function isControl(path: string): boolean {
  return path === '/' || path.startsWith('/fake-youtube/');
}

export function handleControl(
  request: IncomingMessage,
  body: string,
  response: ServerResponse,
  controls: Controls,
): void {
  const route = `${request.method} ${(request.url ?? '').split('?')[0]}`;
  switch (route) {
    case 'GET /':
      return sendText(response, 200, 'text/plain; charset=utf-8', usage());
    case 'GET /fake-youtube/requests':
      return requestsPage(response, controls.requests);
    case 'POST /fake-youtube/reset':
      controls.reset();
      return sendText(response, 200, JSON_TYPE, '{}');
    case 'POST /fake-youtube/faults':
      return change(response, () => setUp(body, controls));
    case 'POST /fake-youtube/publish':
      return change(response, () => ({ videoIds: controls.publish(readPublication(body)) }));
    case 'POST /fake-youtube/videos':
      return change(response, () => controls.changeVideos(readVideoChange(body)));
    case 'POST /fake-youtube/channel':
      return change(response, () => controls.changeChannel(readChannelChange(body)));
    default:
      return sendText(response, 404, 'text/plain; charset=utf-8', 'Not found. GET / lists the control pages.\n');
  }
}

/** The number of requests by kind, by client and by video. */
function countsOf(list: readonly RecordedRequest[]): Record<string, Record<string, number>> {
  const counts = COUNTED.map((by) => {
    const found: Record<string, number> = {};
    for (const { [by]: value } of list) if (value !== null) found[value] = (found[value] ?? 0) + 1;
    return [by, found] as const;
  });
  return Object.fromEntries(counts);
}

function setUp(body: string, controls: Controls): void {
  const { faults, settings } = readChanges(body);
  controls.set(settings);
  if (faults) controls.setFaults(...faults);
}

/** Sends what a change returns, or why it was refused. */
function change(response: ServerResponse, make: () => object | void): void {
  try {
    sendText(response, 200, JSON_TYPE, JSON.stringify(make() ?? {}));
  } catch (error) {
    if (!(error instanceof UnreadableError || error instanceof UnknownNameError)) throw error;
    sendText(response, 400, JSON_TYPE, JSON.stringify({ error: error.message }));
  }
}

function requestsPage(response: ServerResponse, log: RequestLog): void {
  const { total, aborted, inFlight, inFlightMax, sockets, socketsMax } = log;
  const figures = { total, aborted, inFlight, inFlightMax, sockets, socketsMax };
  sendText(response, 200, JSON_TYPE, JSON.stringify({ ...figures, ...countsOf(log.list) }));
}

function usage(): string {
  const channels = CHANNELS.map(({ id, handle, name }) => `  ${handle ?? id}  ${name}`).join('\n');
  const playlists = PLAYLISTS.map(({ id, title }) => `  ${id}  ${title}`).join('\n');
  return (
    `A fake YouTube.\n\nChannels:\n${channels}\n` +
    GENERATED_FORMS.map((form) => `  ${form}\n`).join('') +
    '\n' +
    `Playlists:\n${playlists}\n\n` +
    'GET /fake-youtube/requests  counts of the received requests\n' +
    'POST /fake-youtube/faults   {"faults":[{"kind":"429","match":{"kind":"player"},"rate":0.1}],"latencyMs":50}\n' +
    'POST /fake-youtube/publish  {"channel":"@tidewater","count":1,"as":"video","below":0,"title":"…","publishedAt":"…"}\n' +
    '                            puts new videos on a channel and returns their IDs; all but the channel is optional\n' +
    `                            as: ${VIDEO_STATES.join(', ')}\n` +
    'POST /fake-youtube/videos   {"videoIds":["…"],"as":"private"} or {"videoIds":["…"],"deleted":true}\n' +
    'POST /fake-youtube/channel  {"channel":"@tidewater","name":"…","handle":"@…","terminated":true,"order":["…"]}\n' +
    'POST /fake-youtube/reset    restores the start\n'
  );
}
