import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Fault, FaultBook } from './faults/fault-registry.js';
import { type Hold, Holds } from './faults/held-requests.js';
import type { RequestMatch } from './faults/match.js';
import { RequestHandler } from './request-handler.js';
import { RequestLog } from './request-log.js';
import { type Settings, settingsOf } from './settings.js';

export interface FakeYoutubeOptions extends Partial<Settings> {
  /** Default 0: any free one. */
  port?: number;
  faults?: readonly Fault[];
  /** Of the dice for faults with a rate; default 1. */
  seed?: number;
}

/** A server that speaks as much of YouTube as the service asks for, from a catalogue of its own. */
export interface FakeYoutube {
  /** `http://127.0.0.1:<port>`, for `YOUTUBE_BASE_URL`. */
  url: string;
  requests: RequestLog;
  /** Replaces all faults. */
  setFaults(...faults: Fault[]): void;
  /** Throws the dice for faults with a rate by another seed. */
  reseed(seed: number): void;
  /** Changes some of the settings. */
  set(settings: Partial<Settings>): void;
  /** Stops the requests that match in flight; `count` says how many must have arrived for `arrived`. */
  hold(match: RequestMatch, count?: number): Hold;
  /** Back to the options of the start: releases holds, forgets requests, restores faults and settings. */
  reset(): void;
  close(): Promise<void>;
}

/**
 * Starts a fake YouTube on 127.0.0.1.
 *
 * @throws when the port is taken
 */
export async function startFakeYoutube(options: FakeYoutubeOptions = {}): Promise<FakeYoutube> {
  const requests = new RequestLog();
  const faults = new FaultBook(options.seed ?? 1);
  const holds = new Holds();
  const settings = settingsOf(options);
  const controls = {
    requests,
    setFaults: (...given: Fault[]) => faults.set(given),
    reseed: (seed: number) => faults.reseed(seed),
    set: (changes: Partial<Settings>) => void Object.assign(settings, settingsOf({ ...settings, ...changes })),
    hold: (match: RequestMatch, count?: number) => holds.hold(match, count),
    reset: () => {
      holds.releaseAll();
      requests.clear();
      faults.reseed(options.seed ?? 1);
      faults.set(options.faults ?? []);
      Object.assign(settings, settingsOf(options));
    },
  };
  controls.reset();

  const handler = new RequestHandler(settings, faults, holds, requests, controls);
  const server = createServer((request, response) => void handler.handle(request, response));
  // Longer than any test pauses: the default of 5 seconds would reset connections that a caller is about to use again.
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
