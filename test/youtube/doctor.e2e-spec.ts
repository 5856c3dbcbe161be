import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ConsoleLogger, Logger } from '@nestjs/common';
import { Environment } from '../../src/config/environment.js';
import { examine, type DoctorReport } from '../../src/platform/youtube/doctor/doctor.js';
import { asString, at, isObject } from '../../src/platform/youtube/response-parsing.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { RecordedReport } from '../recordings/recorded-report.js';

const PROJECT = join(import.meta.dirname, '../..');

let fakeYoutube: FakeYoutube;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
});
beforeEach(() => {
  fakeYoutube.reset();
  Logger.overrideLogger(false);
});
afterAll(async () => {
  Logger.overrideLogger(new ConsoleLogger());
  await fakeYoutube.close();
});

function examined(choices: Partial<Environment> = {}, handle = 'tidewater', videosMax = 5): Promise<DoctorReport> {
  const changes = { YOUTUBE_BASE_URL: fakeYoutube.url, UPSTREAM_RETRIES: 0 };
  const environment = Object.assign(new Environment(), changes, choices);
  return examine(environment, null, { kind: 'handle', handle }, videosMax);
}

interface Ended {
  code: unknown;
  output: string;
  errors: string;
}

async function run(command: readonly string[], variables: Record<string, string>): Promise<Ended> {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, command, {
    cwd: PROJECT,
    env: { PATH, HOME, UPSTREAM_RETRIES: '0', ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed: Promise<unknown[]> = once(child, 'close');
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, output, errors };
}

const smoke = (words: readonly string[], variables: Record<string, string> = {}) =>
  run(['dist/smoke.js', ...words], { YOUTUBE_BASE_URL: fakeYoutube.url, ...variables });

describe('the doctor', () => {
  it('finds which clients return captions, the shape of the pages and whether field masks are honoured', async () => {
    fakeYoutube.set({ playlistShape: 'new', fieldsIgnored: ['IOS'] });
    fakeYoutube.setFaults(
      { kind: 'retired-reason', match: { client: 'VISIONOS' } },
      { kind: 'empty', match: { kind: 'timedtext', client: 'ANDROID' } },
    );
    const clients = ['VISIONOS', 'ANDROID', 'IOS', 'WEB'] as const;
    const report = await examined({ PO_TOKEN_URL: fakeYoutube.url, YOUTUBE_CLIENTS: [...clients] });
    expect(report).toMatchObject({ serves: true, channel: { handle: '@tidewater' } });
    expect(report.videos.map(({ outcome }) => outcome)).toEqual(Array(5).fill('ok'));
    for (const finding of [
      /^channel Tidewater.* \(@tidewater, UC/,
      /^uploads \d+ listed/,
      /^page shape of uploads new$/,
      /^field mask WEB honoured$/,
      /^field mask IOS ignored$/,
      /^client VISIONOS upstream_failure, VISIONOS client-retired/,
      /^client ANDROID upstream_blocked, ANDROID tracks/,
      /^client IOS ok, IOS tracks/,
      /^client WEB ok, WEB tracks/,
    ])
      expect(report.findings).toContainEqual(expect.stringMatching(finding));
  });

  it.each([
    ['captcha', 'player', 'client VISIONOS upstream_blocked'],
    ['captcha', 'browse', 'FAILED upstream_blocked: '],
    ['not-json', 'browse', 'FAILED upstream_failure: '],
  ] as const)('finds that the service would not serve with %s on %s', async (kind, requests, finding) => {
    fakeYoutube.setFaults({ kind, match: { kind: requests } }, { kind, match: { kind: 'reel' } });
    const report = await examined();
    expect(report.serves).toBe(false);
    expect(report.findings).toContainEqual(expect.stringContaining(finding));
  });

  it('asks for videos that can have captions, not for those that are live or announced', async () => {
    const { serves, videos } = await examined({}, 'harbourlight', 2);
    expect([serves, videos.map(({ videoId, outcome }) => `${videoId} ${outcome}`)]).toEqual([
      true,
      ['hl-dinghy__ ok', 'hl-bowline_ ok'],
    ]);
  });

  it.each([
    ['serve', true, 'served', []],
    ['not serve', false, 'refused', [{ kind: 'captcha', match: { kind: 'player' } } as const]],
  ] as const)(
    'finds by its controls that the service would %s, at a channel without uploads',
    async (_, serves, control, faults) => {
      fakeYoutube.setFaults(...faults);
      const report = await examined({ YOUTUBE_CLIENTS: ['VISIONOS', 'IOS'] }, 'emptyslip');
      expect([report.serves, report.videos]).toEqual([serves, []]);
      expect(report.findings).toContain(`client IOS no video to ask for, control ${control}`);
    },
  );

  it('states that the channel does not exist, which says nothing about the address', async () => {
    const { serves, findings } = await examined({}, 'nobody-here');
    expect([serves, findings[0]]).toEqual([null, expect.stringMatching(/^FAILED channel_not_found/)]);
  });
});

describe('npm run smoke', () => {
  it('exits with 1 when the service would not serve', async () => {
    fakeYoutube.setFaults({ kind: 'captcha' });
    const { code, output } = await smoke(['@tidewater', '2']);
    expect(code).toBe(1);
    expect(output).toMatch(/^FAILED upstream_blocked: /m);
    expect(output.trim().split('\n').at(-1)).toBe('The service would not serve.');
  });

  it('does not judge the address by a channel that does not exist', async () => {
    const { code, output } = await smoke(['@nobody-here']);
    expect([code, output.trim().split('\n').at(-1)]).toEqual([1, 'This channel does not exist: name another one.']);
  });

  it.each([[['@tidewater', '--record']], [['https://example.org/@x']]])('ends with one line for %j', async (words) => {
    const { code, errors } = await smoke(words);
    expect([code, errors.trim().split('\n').length]).toEqual([1, 1]);
  });

  it('records the traffic without addresses, keys, tokens, cookies and visitor data, and the traffic plays as reported', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'recorded-'));
    try {
      const secrets = { PO_TOKEN_URL: fakeYoutube.url };
      const words = ['@harbourlight', '12', '--record', directory];
      const clients = 'VISIONOS,ANDROID,IOS,ANDROID_REEL,ANDROID_VR,WEB';
      const { code, output, errors } = await smoke(words, { ...secrets, YOUTUBE_CLIENTS: clients });
      expect([errors, code]).toEqual(['', 0]);
      expect(output.match(/^video /gm)).toHaveLength(12);

      const files = readdirSync(directory).filter((name) => name.endsWith('.json'));
      expect(files.length).toBeGreaterThan(20);
      const written = files.map((name) => readFileSync(join(directory, name), 'utf8'));
      const sent = fakeYoutube.requests.list;
      const planted = [
        new URL(fakeYoutube.url).host,
        '127.0.0.1',
        'SOCS=',
        ...sent.flatMap(({ visitorData }) => visitorData ?? []),
        ...sent.flatMap(({ path }) => new URL(path, 'http://x').searchParams.get('pot') ?? []),
      ];
      expect(sent.some(({ visitorData }) => visitorData !== null)).toBe(true);
      expect(sent.some(({ path }) => path.includes('pot='))).toBe(true);
      for (const text of [...written, readFileSync(join(directory, 'report/report.json'), 'utf8')])
        for (const secret of planted) expect(text).not.toContain(secret);
      for (const recording of written.map((each): unknown => JSON.parse(each))) {
        expect(isObject(recording) && Object.keys(recording)).toEqual(['name', 'source', 'request', 'response']);
        expect(asString(at(recording, 'request', 'path'))).toMatch(/^\//);
      }

      await expectToPlay(new RecordedReport(directory));
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

/** Plays the recording as `npm run test:recordings` does. */
async function expectToPlay(report: RecordedReport): Promise<void> {
  await report.open();
  try {
    const outcomes = await report.outcomes();
    expect(outcomes).not.toEqual([]);
    for (const { recorded, played } of [await report.channel(), await report.uploads(), ...outcomes])
      expect(played).toEqual(recorded);
  } finally {
    await report.close();
  }
}
