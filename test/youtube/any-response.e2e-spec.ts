import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../texts/any-text.js';
import { DomainError } from '../../src/domain/errors.js';
import { ContinuationRejectedError } from '../../src/platform/video-platform.js';
import { VIDEO_FAILURE_CODES } from '../../src/domain/transcript.js';
import { mutationsOf } from '../pages/page-mutations.js';
import {
  captionTrack,
  CHANNEL_ID,
  channelPage,
  lockup,
  newToken,
  oldPage,
  oldToken,
  playerResponse,
  playlistPage,
  playlistVideo,
  VIDEO_ID,
} from '../pages/youtube-pages.js';
import { type Adapter, context, listPlaylist, listUploads, openAdapter } from './adapter.js';

interface Given {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

const CAPTIONS = '<?xml version="1.0" encoding="utf-8" ?><transcript><text start="0" dur="1">word</text></transcript>';

let server: Server;
let url: string;
/** By the last part of the path. */
let given: Record<string, Given | ((url: URL, body: unknown) => Given)> = {};

beforeAll(async () => {
  server = createServer((request, response) => {
    const requested = new URL(request.url ?? '', 'http://any.invalid');
    const answer = given[requested.pathname.split('/').at(-1) ?? ''] ?? given['else'] ?? json({});
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const sent: unknown = chunks.length === 0 ? null : JSON.parse(Buffer.concat(chunks).toString());
      const { status, headers, body } = typeof answer === 'function' ? answer(requested, sent) : answer;
      response.writeHead(status, headers).end(body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const bytes = (text: string) => new TextEncoder().encode(text);
const json = (value: unknown): Given => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: bytes(JSON.stringify(value) ?? ''),
});

const status = fc.oneof(
  { weight: 4, arbitrary: fc.constant(200) },
  fc.constantFrom(201, 301, 400, 403, 404, 429, 500, 503),
);
const headers = fc
  .record(
    {
      'content-type': fc.constantFrom('application/json', 'text/html', 'text/xml; charset=UTF-16', 'x'),
      'content-encoding': fc.constantFrom('gzip', 'br', 'zstd', 'identity'),
      'retry-after': fc.constantFrom('1', '-1', 'soon', '99999999999', 'Wed, 21 Oct 2099 07:28:00 GMT'),
      location: fc.constantFrom('/', '//', 'https://', 'https://www.google.com/sorry/x', 'https://example.invalid/'),
    },
    { requiredKeys: [] },
  )
  .map((some): Record<string, string> => ({ ...some }));
const body = fc.oneof(
  fc.uint8Array({ maxLength: 400 }),
  anyText().map(bytes),
  fc.jsonValue().map((value) => bytes(JSON.stringify(value))),
  fc.nat(CAPTIONS.length).map((length) => bytes(CAPTIONS.slice(0, length))),
);
const anything: fc.Arbitrary<Given> = fc.record({ status, headers, body });

const player = playerResponse({
  captions: { captionTracks: [captionTrack('en'), captionTrack('de', { generated: true })] },
});
const pages = [
  oldPage([playlistVideo('aaaaaaaaaaa'), playlistVideo('bbbbbbbbbbb'), oldToken('next')]),
  playlistPage([lockup('aaaaaaaaaaa'), lockup('bbbbbbbbbbb'), newToken('next')]),
  channelPage(),
];
const changed = (page: unknown) => mutationsOf(page).map(json);

/**
 * Reads any sequences of responses, each through one adapter like a running service, and a new one for the next sequence:
 * refusals accumulate until the circuit opens.
 */
async function checkSequences<T>(
  response: fc.Arbitrary<T>,
  read: (platform: Adapter['platform'], response: T) => Promise<void>,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(response, { minLength: 4, maxLength: 4 }), async (responses) => {
      const adapter = await openAdapter(url);
      try {
        for (const each of responses) {
          await read(adapter.platform, each);
        }
        expect(adapter.logged.filter(({ event }) => event === 'youtube_internal_error')).toEqual([]);
      } finally {
        await adapter.close();
      }
    }),
    { numRuns: 12 },
  );
}

async function readVideo(platform: Adapter['platform'], languages: string[]): Promise<void> {
  const outcome = await platform.readVideo(VIDEO_ID, languages, context());
  if (!outcome.ok) return void expect(VIDEO_FAILURE_CODES).toContain(outcome.failure.code);
  const segments = [...outcome.transcript.values()].flat();
  expect(segments.length).toBeGreaterThan(0);
  for (const { text, start, duration } of segments) {
    expect(text.trim()).not.toBe('');
    expect([Number.isFinite(start), Number.isFinite(duration), start >= 0, duration >= 0]).not.toContain(false);
  }
}

async function readChannel(platform: Adapter['platform']): Promise<void> {
  const ends = await Promise.allSettled([
    listUploads(platform, CHANNEL_ID, 3),
    platform.uploads(CHANNEL_ID, undefined, context()),
    platform.uploads(CHANNEL_ID, '2:0/:next', context()).catch((error: unknown) => {
      if (!(error instanceof ContinuationRejectedError)) throw error;
    }),
    listPlaylist(platform, `PL${'a'.repeat(32)}`, 3),
    platform.readChannel(CHANNEL_ID, context()),
    platform.resolveChannel({ kind: 'handle', handle: 'somebody' }, context()),
  ]);
  for (const each of ends) if (each.status === 'rejected') expect(each.reason).toBeInstanceOf(DomainError);
}

const caption: Given = { status: 200, headers: { 'content-type': 'text/xml' }, body: bytes(CAPTIONS) };
const withTracks = (...captionTracks: unknown[]) => playerResponse({ captions: { captionTracks } });
const GATED = captionTrack('en', { query: '&exp=xpe' });

describe('a video with a token-gated and an ordinary language', () => {
  async function read(languages: string[], reel: unknown = withTracks(GATED, captionTrack('de'))) {
    given = {
      player: json(withTracks(GATED, captionTrack('de'))),
      reel_item_watch: json({ playerResponse: reel }),
      timedtext: caption,
    };
    const adapter = await openAdapter(url);
    try {
      return await adapter.platform.readVideo(VIDEO_ID, languages, context());
    } finally {
      await adapter.close();
    }
  }

  it('the ordinary language is returned', async () => {
    expect(await read(['de'])).toMatchObject({ ok: true, transcript: new Map([['de', [{ text: 'word' }]]]) });
  });

  it('the token-gated language is reported as a block, with the available alternatives', async () => {
    expect(await read(['en'])).toMatchObject({ failure: { code: 'upstream_blocked' } });
    const both = await read(['en', 'de']);
    expect(both).toMatchObject({ ok: false, failure: { code: 'upstream_blocked' } });
    expect(both.ok ? '' : both.failure.message).toContain('Request de only.');
  });

  it('the token-gated language is not reported as missing when another client does not list it, or sees no captions or no video', async () => {
    for (const reel of [withTracks(captionTrack('de')), playerResponse(), undefined]) {
      expect(await read(['en'], reel)).toMatchObject({ failure: { code: 'upstream_blocked' } });
    }
  });
});

it('a text that is longer than the longest that is read is fetched once, and is no fault of a client', async () => {
  let fetched = 0;
  const cues = '<text start="0" dur="1">a</text>'.repeat(30_001);
  const long = { ...caption, body: bytes(`<transcript>${cues}</transcript>`) };
  given = { player: json(player), reel_item_watch: json({ playerResponse: player }) };
  given['timedtext'] = () => ((fetched += 1), long);
  const adapter = await openAdapter(url);
  const read = await adapter.platform.readVideo(VIDEO_ID, [], context());
  expect(read).toMatchObject({ ok: false, failure: { code: 'upstream_failure' } });
  expect(read.ok ? '' : read.failure.message).toContain('more than 30000 cues');
  expect(fetched).toBe(1);
  expect(adapter.logged.filter(({ event }) => event === 'youtube_unreadable')).toEqual([]);
  await adapter.close();
});

describe('a refused field mask', () => {
  it('is no longer sent by the client, in this request and in later ones', async () => {
    const masks: boolean[] = [];
    const refusal: Given = { ...json({ error: { code: 400 } }), status: 400 };
    const ofVideo = (requested: URL): Given => {
      const masked = requested.searchParams.has('$fields');
      masks.push(masked);
      return masked ? refusal : json(player);
    };
    given = { player: ofVideo, timedtext: caption };
    const adapter = await openAdapter(url, { YOUTUBE_CLIENTS: ['VISIONOS'] });
    for (let times = 0; times < 2; times += 1)
      expect(await adapter.platform.readVideo(VIDEO_ID, [], context())).toMatchObject({ ok: true });
    expect(masks).toEqual([true, false, false]);
    expect(adapter.logged).toContainEqual({ event: 'youtube_fields_not_honoured', client: 'VISIONOS' });
    await adapter.close();
  });

  it('is suspected once for each client when the request is refused without it too', async () => {
    const masks: boolean[] = [];
    const refused = (requested: URL): Given => {
      masks.push(requested.searchParams.has('$fields'));
      return { ...json({ error: { code: 400 } }), status: 400 };
    };
    given = { player: refused, timedtext: caption };
    const adapter = await openAdapter(url, { YOUTUBE_CLIENTS: ['VISIONOS', 'ANDROID'] });
    for (let times = 0; times < 2; times += 1)
      expect(await adapter.platform.readVideo(VIDEO_ID, [], context())).toMatchObject({ ok: false });
    expect(masks.filter((masked) => !masked)).toHaveLength(2);
    await adapter.close();
  });
});

describe('any response of the platform', () => {
  it('to a caption request results in a transcript or an error code, in time', async () => {
    await checkSequences(anything, async (platform, timedtext) => {
      given = { player: json(player), reel_item_watch: json({ playerResponse: player }), timedtext };
      await readVideo(platform, []);
    });
  });

  it('to a video request results in a transcript or an error code, in time', async () => {
    const language = fc.subarray(['en', 'de', 'fr']);
    const asked = fc.record({ answer: fc.oneof(anything, changed(player)), languages: language });
    await checkSequences(asked, async (platform, { answer, languages }) => {
      given = { player: answer, reel_item_watch: answer, timedtext: caption };
      await readVideo(platform, languages);
    });
  });

  it('to a channel request results in its data or an error code, in time', async () => {
    await checkSequences(fc.oneof(anything, ...pages.map(changed)), async (platform, answer) => {
      given = { else: answer };
      await readChannel(platform);
    });
  });
});
