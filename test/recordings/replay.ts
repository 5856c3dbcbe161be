import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { at, asString } from '../../src/platform/youtube/response-parsing.js';

interface Recording {
  name: string;
  method: string;
  path: string;
  /** The InnerTube client; null in recordings that do not state it. */
  client: string | null;
  request: unknown;
  status: number;
  contentType: string;
  body: string;
}

/** The constants of `src/platform/youtube/video/player-requests.ts`. */
const CONTROL_VIDEOS: ReadonlySet<string> = new Set(['jNQXAC9IVRw', '9bZkp7q19f0']);
/** A video that VISIONOS and the reel were recorded to play. */
const CONTROL_PLAYED_AS = 'M4gD1WSo5mA';

/** A server that replays recorded traffic. */
export interface Replay {
  url: string;
  /** Requests without a recording: path and main argument. */
  missed: string[];
  /** Responds to every `/player` request with this recording; null for that of the requested video. */
  playAs(name: string | null): void;
  close(): Promise<void>;
}

/** Reads every recording of a folder. @throws when there is none: tests over nothing would all pass */
export function readRecordings(folder: string): Map<string, Recording> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  if (names.length === 0) throw new Error(`There are no recordings in ${folder}.`);
  return new Map(
    names.map((file) => {
      const recorded: unknown = JSON.parse(readFileSync(join(folder, file), 'utf8'));
      const name = file.replace(/\.json$/, '');
      const body = at(recorded, 'response', 'body');
      return [
        name,
        {
          name,
          method: asString(at(recorded, 'request', 'method')) ?? '',
          path: asString(at(recorded, 'request', 'path')) ?? '',
          client: asString(at(recorded, 'request', 'client')),
          request: at(recorded, 'request', 'body'),
          status: Number(at(recorded, 'response', 'status')),
          contentType: asString(at(recorded, 'response', 'contentType')) ?? '',
          body: typeof body === 'string' ? body : JSON.stringify(body),
        },
      ];
    }),
  );
}

/**
 * Starts the server. The response is the recording of the same path and the same main argument (`url`,
 * `browseId`, `continuation`, `videoId`).
 *
 * @param aliases names of recordings for main arguments that they were not recorded with
 */
export async function startReplay(folder: string, aliases: Readonly<Record<string, string>>): Promise<Replay> {
  const recordings = readRecordings(folder);
  const missed: string[] = [];
  let playing: string | null = null;

  const played = new Map<string, number>();
  /** The recordings of one request follow one another; the last repeats. */
  const inTurn = (key: string, found: readonly Recording[]): Recording | undefined => {
    const index = played.get(key) ?? 0;
    played.set(key, index + 1);
    return found[Math.min(index, found.length - 1)];
  };

  /** The video that a client asks for when it doubts a refusal: no recording has it, so it is played as another one. */
  const findControl = (path: string, client: string, videoId: string): Recording | undefined => {
    const played = [...recordings.values()].find(
      (one) => one.path === path && one.client === client && argumentOf(one.request) === CONTROL_PLAYED_AS,
    );
    const recording = played ?? (path === '/youtubei/v1/player' ? recordings.get('player-android-ok') : undefined);
    const id = recording && argumentOf(recording.request);
    return recording && { ...recording, body: recording.body.replaceAll(id ?? '', videoId) };
  };

  const find = (
    method: string,
    path: string,
    query: string,
    argument: string,
    client: string,
  ): Recording | undefined => {
    if (path === '/api/timedtext' && recordings.has('timedtext-xml')) return recordings.get('timedtext-xml');
    if (CONTROL_VIDEOS.has(argument)) return findControl(path, client, argument);
    if (path === '/youtubei/v1/player' && playing !== null) return recordings.get(playing);
    const alias = aliases[argument];
    if (alias !== undefined) return recordings.get(alias);
    const all = [...recordings.values()].filter((one) => one.method === method);
    if (method === 'GET')
      return inTurn(
        path + query,
        all.filter((one) => isSameAddress(one.path, path, query)),
      );
    const found = all.filter((one) => one.path === path && argumentOf(one.request) === argument);
    const ofClient = found.filter((one) => one.client === client);
    // Visitor data is the one request without an argument.
    if (argument === '' && path !== '/youtubei/v1/visitor_id') return undefined;
    return inTurn(`${path} ${argument} ${client}`, ofClient.length > 0 ? ofClient : found);
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { pathname, search } = new URL(request.url ?? '', 'http://replay.invalid');
    const text = Buffer.concat(chunks).toString();
    const sent: unknown = text === '' ? null : JSON.parse(text);
    const argument = argumentOf(sent);
    const client = asString(at(sent, 'context', 'client', 'clientName')) ?? '';
    const recording = find(request.method ?? '', pathname, search, argument, client);
    if (recording) {
      response.writeHead(recording.status, { 'content-type': recording.contentType }).end(recording.body);
      return;
    }
    missed.push(`${pathname} ${argument}`);
    response.writeHead(500, { 'content-type': 'application/json' }).end('{}');
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    missed,
    playAs: (name) => {
      if (name !== null && !recordings.has(name)) throw new Error(`There is no recording ${name}.`);
      playing = name;
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Whether a recorded address has the path and every parameter that was recorded. */
function isSameAddress(recorded: string, path: string, query: string): boolean {
  const { pathname, searchParams } = new URL(recorded, 'http://replay.invalid');
  const sent = new URLSearchParams(query);
  const names = new Set([...searchParams.keys(), 'fmt']);
  return (
    pathname === path && searchParams.size > 0 && [...names].every((name) => searchParams.get(name) === sent.get(name))
  );
}

function argumentOf(body: unknown): string {
  const places = [['url'], ['browseId'], ['continuation'], ['videoId'], ['playerRequest', 'videoId']];
  return places.map((place) => asString(at(body, ...place))).find((value) => value !== null) ?? '';
}
