import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Budgets } from './budgets.js';
import { PoTokens } from './calls/po-token.js';
import { type Fault, FaultRegistry, type RequestMatch } from './faults/fault-registry.js';
import { type Hold, Holds } from './faults/held-requests.js';
import {
  type ChannelChange,
  type PlaylistChange,
  CurrentCatalogue,
  type Publication,
  type VideoChange,
} from './publish/current-catalogue.js';
import { RequestHandler } from './request-handler.js';
import { RequestLog } from './request-log.js';
import { type Settings, settingsOf } from './settings.js';
import { Visitors } from './visitors.js';

export interface FakeYoutubeOptions extends Partial<Settings> {
  /** Default 0: any free port. */
  port?: number;
  faults?: readonly Fault[];
  /** Seed of the random numbers for faults with a rate; default 1. */
  seed?: number;
}

/** A server that implements the part of YouTube that the service uses, with a catalogue of its own. */
export interface FakeYoutube {
  /** `http://127.0.0.1:<port>`, for `YOUTUBE_BASE_URL`. */
  url: string;
  requests: RequestLog;
  /** Replaces all faults. */
  setFaults(...faults: Fault[]): void;
  /** Changes the seed of the random numbers for faults with a rate. */
  reseed(seed: number): void;
  /** Changes some of the settings. */
  set(settings: Partial<Settings>): void;
  /** Holds matching requests in flight; `arrived` resolves once `count` of them have arrived. */
  hold(match: RequestMatch, count?: number): Hold;
  /** Publishes videos on a channel; returns their IDs, newest first. */
  publish(publication: Publication): string[];
  /** Changes the state of videos, of which the list keeps the places, or deletes them. */
  changeVideos(change: VideoChange): void;
  /** Renames, terminates or restores a channel, or changes the order of its uploads. */
  changeChannel(change: ChannelChange): void;
  /** Changes which videos a playlist has, in their order. */
  changePlaylist(change: PlaylistChange): void;
  /** Restores the start: releases holds, deletes recorded requests, restores faults, settings and the catalogue. */
  reset(): void;
  close(): Promise<void>;
}

/**
 * Starts a fake YouTube on 127.0.0.1.
 *
 * @throws when the port is in use
 */
export async function startFakeYoutube(options: FakeYoutubeOptions = {}): Promise<FakeYoutube> {
  const requests = new RequestLog();
  const holds = new Holds();
  const settings = settingsOf(options);
  const budgets = new Budgets(Date.now);
  const tokens = new PoTokens();
  const visitors = new Visitors();
  const catalogue = new CurrentCatalogue();
  const faults = new FaultRegistry(options.seed ?? 1, tokens, visitors);
  const controls = {
    requests,
    setFaults: (...given: Fault[]) => faults.set(given),
    reseed: (seed: number) => faults.reseed(seed),
    set: (changes: Partial<Settings>) => void Object.assign(settings, changes),
    hold: (match: RequestMatch, count?: number) => holds.hold(match, count),
    publish: (publication: Publication) => catalogue.publish(publication),
    changeVideos: (change: VideoChange) => catalogue.changeVideos(change),
    changeChannel: (change: ChannelChange) => catalogue.changeChannel(change),
    changePlaylist: (change: PlaylistChange) => catalogue.changePlaylist(change),
    reset: () => {
      holds.releaseAll();
      catalogue.reset();
      requests.clear();
      faults.reseed(options.seed ?? 1);
      faults.set(options.faults ?? []);
      budgets.clear();
      Object.assign(settings, settingsOf(options));
    },
  };
  controls.reset();

  const state = { settings, visitors, tokens, catalogue };
  const handler = new RequestHandler(state, faults, budgets, holds, requests, controls);
  const server = createServer((request, response) => void handler.handle(request, response));
  // Longer than any pause in a test: the default of 5 seconds would reset connections that a client is about to reuse.
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket) => {
    requests.connect();
    socket.on('close', () => requests.disconnect());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    holds.releaseAll();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };
  return { ...controls, url: `http://127.0.0.1:${port}`, close };
}
