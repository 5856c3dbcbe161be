import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { CliSession, runCli, startCli } from './run-cli.js';

let youtube: FakeYoutube;
let database: QuotaDatabase;
let session: CliSession;
beforeAll(async () => {
  session = new CliSession();
  youtube = await startFakeYoutube();
  database = await QuotaDatabase.open();
});
afterAll(async () => {
  session.close();
  await youtube.close();
  await database.close();
});

const variables = (): Record<string, string> => ({
  YOUTUBE_BASE_URL: youtube.url,
  DATABASE_URL: database.url,
});

describe('the command transcripts as a process', () => {
  it('prints the response of the service', async () => {
    const { code, output, errorOutput } = await runCli(['transcripts', '@harbourlight', '--limit', '3'], variables());
    expect(code).toBe(0);
    const body = JSON.parse(output) as { channel: object; results: { videoId: string }[]; summary: object };
    expect(Object.keys(body)).toEqual(['channel', 'results', 'summary']);
    expect(body.results.map(({ videoId }) => videoId)).toEqual(['hl-regatta_', 'hl-tidecam_', 'hl-dinghy__']);
    expect(body.summary).toEqual({ total: 3, succeeded: 1, failed: 2, cached: 0, fetched: 1 });
    expect(errorOutput).toBe('');
  });

  it.each<[what: string, args: string[]]>([
    ['JSON', []],
    ['Markdown', ['--format', 'markdown']],
  ])('prints entries in %s before YouTube has served the later ones', async (_what, args) => {
    const hold = youtube.hold({ kind: 'timedtext' }, 1);
    const child = startCli(['transcripts', '@harbourlight', '--limit', '3', ...args], variables());
    const closed = once(child, 'close');
    try {
      let output = '';
      for await (const part of child.stdout.setEncoding('utf8')) {
        output += String(part);
        // Of the second entry; the third one is held.
        if (output.includes('hl-tidecam_')) hold.release();
      }
      expect(output).toContain('hl-dinghy__');
      expect(await closed).toEqual([0, null]);
    } finally {
      hold.release();
    }
  });

  it.each<[what: string, args: string[]]>([
    ['a channel as Markdown', ['@harbourlight', '--format', 'markdown']],
    ['a channel as JSON', ['@bench-20x300', '--format', 'json']],
  ])('ends without an error when the reader of %s stops early', async (_what, args) => {
    const hold = youtube.hold({ kind: 'timedtext' }, 1);
    const child = startCli(['transcripts', ...args], variables());
    const closed = once(child, 'close');
    try {
      await hold.arrived;
      child.stdout.destroy();
    } finally {
      hold.release();
    }
    expect(await closed).toEqual([0, null]);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('ends at %s while YouTube does not respond', async (signal) => {
    const hold = youtube.hold({ kind: 'timedtext' }, 1);
    // So long that nothing but the signal ends it.
    const patient = { UPSTREAM_TIMEOUT_SECONDS: '3600', REQUEST_DEADLINE_SECONDS: '3600' };
    const child = startCli(['transcripts', '@harbourlight'], { ...variables(), ...patient });
    const closed = once(child, 'close');
    try {
      await hold.arrived;
      child.kill(signal);
      expect(await closed).toEqual([null, signal]);
    } finally {
      hold.release();
    }
  });

  it('calls its own service past the proxy of the environment', async () => {
    let calls = 0;
    const proxy = createServer((_request, response) => {
      calls += 1;
      response.writeHead(502).end();
    }).on('connect', (_request, socket) => {
      calls += 1;
      socket.destroy();
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      const proxied = { ...variables(), NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, http_proxy: url };
      const { code, errorOutput } = await runCli(['transcripts', 'https://youtu.be/tw-tea_____'], proxied);
      expect([code, errorOutput, calls]).toEqual([0, '', 0]);
    } finally {
      proxy.close();
    }
  });

  it('ends with 1 and one line for an unknown channel', async () => {
    const { code, output, errorOutput } = await runCli(['transcripts', '@no-such-channel'], variables());
    expect([code, output]).toEqual([1, '']);
    expect(errorOutput).toMatch(/^error: Channel not found\. Use a channel .*a playlist .*the URL of a video.*\n$/);
  });
});

describe('the command transcripts', () => {
  it.each<[what: string, args: string[], start: RegExp]>([
    [
      'a channel as Markdown',
      ['@tidewater', '--limit', '2', '--format', 'markdown'],
      /^# Tidewater Kitchen\n[^]*\n## /,
    ],
    ['a playlist', [SATURDAY.id, '--limit', '1'], /^\{"playlist":\{"id":"PL/],
    ['a video as subtitles', ['https://youtu.be/tw-tea_____', '--format', 'vtt'], /^WEBVTT\n/],
    [
      'the Shorts of a channel',
      ['@harbourlight', '--limit', '1', '--kinds', 'short', '--languages', 'fi,*'],
      /^\{"channel":[^]*"results":\[\{"videoId":"hl-bowline_","ok":true[^]*"kind":"short"[^]*"summary":\{"total":1,/,
    ],
    [
      'the first of the languages only',
      ['https://youtu.be/hl-keeper__', '--languages', 'it,de,en', '--match', 'first'],
      /"transcript":\{"de":\[(?!.*"en":\[)/,
    ],
    [
      'what is included, and chunks as paragraphs',
      ['https://youtu.be/tw-bread___', '--include', 'tags,chapters', '--chunk-seconds', '600', '--format', 'markdown'],
      /\n\nTags: bread, rye\n\nChapters:\n\n(?:- \[0:\d0\]\(\S+\) \w+\n){3}\n\[0:00\]\(\S+\) [^\n]+\n$/,
    ],
    ['a video', ['https://www.youtube.com/watch?v=tw-tea_____'], /^\{"videoId":"tw-tea_____","ok":true/],
  ])('prints %s', async (_what, args, start) => {
    const { code, output } = await session.run(['transcripts', ...args], variables());
    expect(output).toMatch(start);
    expect(code).toBe(0);
  });

  it('ends with one line when YouTube fails, unless the log is to show the request', async () => {
    youtube.setFaults({ kind: '500', match: { kind: ['resolve', 'browse'] } });
    try {
      const args = ['transcripts', '@tidewater', '--limit', '1'];
      const { code, output, errorOutput } = await session.run(args, variables());
      expect([code, output]).toEqual([1, '']);
      expect(errorOutput).toMatch(/^error: [^\n]+\n$/);
      const shown = await session.run(args, { ...variables(), LOG_LEVEL: 'debug' });
      expect(shown.errorOutput).toMatch(/"event":"request",[^\n]*"status":502,/);
    } finally {
      youtube.setFaults();
    }
  });

  it.each<[what: string, args: string[], line: RegExp]>([
    ['a video without captions', ['https://youtu.be/hl-silent__'], /error: This video has no captions\.\n$/],
    ['a mix', ['https://www.youtube.com/playlist?list=RDtw-bread___'], /^error: A mix \(RD…\)/],
    ['the text of a channel', ['@tidewater', '--format', 'text'], /^error: text is a format of one video\./],
    [
      'a limit of one video',
      ['https://youtu.be/tw-tea_____', '--limit', '3'],
      /^error: --limit, --kinds and --published-after are for/,
    ],
    [
      'kinds of one video',
      ['https://youtu.be/tw-tea_____', '--kinds', 'live'],
      /^error: --limit, --kinds and --published-after are for/,
    ],
    ['an unknown format', ['@tidewater', '--format', 'pdf'], /^error: .*pdf.* is invalid\. Allowed choices are/],
    ['a limit of 0', ['@tidewater', '--limit', '0'], /^error: .*limit must be an integer of at least 1 /],
    ['malformed languages', ['@tidewater', '--languages', 'e'], /is invalid\. languages must be/],
    ['* before a language', ['@tidewater', '--languages', '*,de'], /is invalid\. languages must be .* as the last/],
    [
      'unknown kinds',
      ['@tidewater', '--kinds', 'shorts'],
      /kinds must be one or more of video, short, live, upcoming, separated by commas\.\n$/,
    ],
    ['short chunks', ['@tidewater', '--chunk-seconds', '10'], /chunkSeconds must be an integer from 15 to 600\.\n$/],
  ])('ends with one line for %s', async (_what, args, line) => {
    const { code, output, errorOutput } = await session.run(['transcripts', ...args], variables());
    expect([code, output]).toEqual([1, '']);
    expect(errorOutput).toMatch(line);
  });
});
