import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ConsoleLogger, Logger } from '@nestjs/common';
import { Environment } from '../../src/config/environment.js';
import { Doctor, type DoctorReport } from '../../src/platform/youtube/doctor/doctor.js';
import { asArray, asString, at, isObject } from '../../src/platform/youtube/response-parsing.js';
import { startGateway } from '../fake-youtube/gateway.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { RecordedReport } from '../recordings/recorded-report.js';

const PROJECT = join(import.meta.dirname, '../..');
const PASSWORD = 'planted-proxy-password';

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

function examine(choices: Partial<Environment> = {}, handle = 'tidewater', videosMax = 5): Promise<DoctorReport> {
  const changes = { YOUTUBE_BASE_URL: fakeYoutube.url, UPSTREAM_RETRIES: 0 };
  const environment = Object.assign(new Environment(), changes, choices);
  const reference = { kind: 'handle', handle } as const;
  return new Doctor(environment, null).examine(reference, videosMax);
}

const failedIn = ({ checks }: DoctorReport) =>
  checks.filter(({ works }) => !works).map(({ area, subject }) => `${area} ${subject}`.trim());
const has = ({ checks }: DoctorReport, area: string, subject = '') =>
  checks.find((check) => check.area === area && check.subject === subject);

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
  it('finds that everything works', async () => {
    const provider = `${fakeYoutube.url}/`;
    const clients = ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR', 'WEB'] as const;
    const report = await examine({ PO_TOKEN_URL: provider, YOUTUBE_CLIENTS: [...clients] });
    expect([report.serves, failedIn(report), report.advice]).toEqual([true, [], []]);
    expect(report.channel).toMatchObject({ handle: '@tidewater' });
    for (const client of clients) expect(has(report, 'client', client)).toMatchObject({ works: true });
    for (const area of ['channel', 'uploads', 'videos', 'po token'])
      expect([area, has(report, area)?.works]).toEqual([area, true]);
    for (const [area, subject] of [
      ['page shape', 'uploads'],
      ['field mask', 'WEB'],
      ['visitor id', 'WEB'],
      ['feed', 'WEB'],
    ])
      expect([area, has(report, area ?? '', subject)?.works]).toEqual([area, true]);
    expect(report.videos.map(({ outcome }) => outcome)).toEqual(Array(5).fill('ok'));
  });

  it('names the clients that work, and the version that is retired', async () => {
    fakeYoutube.setFaults(
      { kind: 'retired-reason', match: { client: 'VISIONOS' } },
      { kind: 'bot-check', match: { client: 'IOS' } },
    );
    const report = await examine();
    expect(report.serves).toBe(true);
    expect(failedIn(report)).toEqual(['client VISIONOS', 'client IOS']);
    expect(report.advice).toEqual([
      'YOUTUBE_CLIENTS=ANDROID,ANDROID_REEL,ANDROID_VR',
      expect.stringContaining('YOUTUBE_CLIENT_OVERRIDES={"VISIONOS"'),
    ]);
  });

  it.each([
    ['captcha', 'player', ['UPSTREAM_PROXY_URL', 'PO_TOKEN_URL']],
    ['bot-check', 'player', ['UPSTREAM_PROXY_URL', 'PO_TOKEN_URL']],
    ['captcha', 'browse', ['UPSTREAM_PROXY_URL']],
    ['not-json', 'browse', ['A newer release']],
  ] as const)('finds that the service would not serve with %s on %s', async (kind, requests, advised) => {
    fakeYoutube.setFaults(
      { kind, match: { kind: requests } },
      ...(requests === 'player' ? [{ kind, match: { kind: 'reel' as const } }] : []),
    );
    const report = await examine();
    expect(report.serves).toBe(false);
    for (const name of advised) expect(report.advice.join('\n')).toContain(name);
  });

  it('checks each client without the PO tokens of WEB', async () => {
    fakeYoutube.setFaults({ kind: 'empty', match: { kind: 'timedtext', client: 'VISIONOS' } });
    expect(failedIn(await examine({ PO_TOKEN_URL: fakeYoutube.url }))).toEqual(['client VISIONOS']);
  });

  it('reports a missing provider, and a feed that is unavailable', async () => {
    fakeYoutube.setFaults({ kind: 'feed-unavailable' }, { kind: '500', match: { kind: 'po-token' } });
    const report = await examine({ PO_TOKEN_URL: fakeYoutube.url });
    expect(report.serves).toBe(true);
    expect(failedIn(report)).toEqual(['feed WEB', 'po token']);
    expect(report.advice.map((line) => line.split(/[ :=]/, 1)[0])).toEqual(['PO_TOKEN_URL', 'PUBLISH_DATES']);
  });

  it('names the proxies that work, never by their URLs', async () => {
    const closed = `http://operator:${PASSWORD}@127.0.0.1:9`;
    const gateway = await startGateway();
    const working = gateway.url.replace('{session}', 'one');
    const report = await examine({ UPSTREAM_PROXY_URL: [closed, working] }).finally(() => gateway.close());
    expect(report.serves).toBe(true);
    expect(has(report, 'egress', 'proxy-1')).toMatchObject({
      works: false,
      detail: expect.stringMatching(/^upstream_failure/),
    });
    expect(has(report, 'egress', 'proxy-2')).toMatchObject({ works: true, detail: expect.stringMatching(/^ok,/) });
    expect(report.advice).toContain('UPSTREAM_PROXY_URL: keep proxy-2, in the order of the list.');
    expect(JSON.stringify(report)).not.toContain(PASSWORD);
  });

  it('asks for another channel when the newest uploads cannot be read by anyone', async () => {
    const report = await examine({}, 'harbourlight', 2);
    expect([report.serves, report.advice]).toEqual([
      false,
      [expect.stringContaining('that has uploads with captions')],
    ]);
  });

  it('states that the channel does not exist', async () => {
    const report = await examine({}, 'nobody-here');
    expect([report.serves, report.advice]).toEqual([false, ['Name a channel that exists.']]);
  });
});

describe('npm run smoke', () => {
  it('exits with 1 and says what to set when the service would not serve', async () => {
    fakeYoutube.setFaults({ kind: 'captcha' });
    const { code, output } = await smoke(['@tidewater', '2']);
    expect(code).toBe(1);
    expect(output).toMatch(/^FAILED {2}channel .*upstream_blocked/m);
    expect(output).toMatch(/^set {5}UPSTREAM_PROXY_URL/m);
    expect(output.trim().split('\n').at(-1)).toBe('The service would not serve.');
  });

  it.each([[['@tidewater', '--record']], [['https://example.org/@x']]])('explains its use for %j', async (words) => {
    const { code, errors } = await smoke(words);
    expect([code, errors.startsWith('Usage: npm run smoke')]).toEqual([1, true]);
  });

  it('records the traffic without addresses, keys, tokens, cookies and visitor data, and the traffic plays as reported', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'recorded-'));
    try {
      const secrets = { PO_TOKEN_URL: fakeYoutube.url };
      const words = ['@harbourlight', '12', '--json', '--record', directory];
      const clients = 'VISIONOS,ANDROID,IOS,ANDROID_REEL,ANDROID_VR,WEB';
      const { code, output, errors } = await smoke(words, { ...secrets, YOUTUBE_CLIENTS: clients });
      expect([errors, code]).toEqual(['', 0]);
      expect(at(JSON.parse(output), 'serves')).toBe(true);

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
      expect(asArray(at(JSON.parse(output), 'videos'))).toHaveLength(12);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

/** Plays the recording as `npm run test:recordings` does. */
async function expectToPlay(report: RecordedReport): Promise<void> {
  await report.open();
  try {
    for (const area of ['channel', 'uploads', 'videos']) expect([area, report.worked(area)]).toEqual([area, true]);
    const outcomes = await report.outcomes();
    expect(outcomes).not.toEqual([]);
    for (const { recorded, played } of [await report.channel(), await report.uploads(), ...outcomes])
      expect(played).toEqual(recorded);
  } finally {
    await report.close();
  }
}
