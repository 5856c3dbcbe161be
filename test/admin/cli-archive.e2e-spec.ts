import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { temporaryFolder } from '../process/program.js';
import { until } from '../until.js';
import { type CliResult, CliSession, startCli } from './run-cli.js';

const folder = temporaryFolder();
let session: CliSession;
let youtube: FakeYoutube;
beforeAll(async () => {
  session = new CliSession();
  youtube = await startFakeYoutube();
});
afterAll(async () => {
  session.close();
  await youtube.close();
  folder.remove();
});
beforeEach(() => youtube.reset());

let directories = 0;
const newDirectory = (): string => join(folder.path, `archive-${(directories += 1)}`);

const variables = (): Record<string, string> => ({ YOUTUBE_BASE_URL: youtube.url, UPSTREAM_RETRIES: '0' });
const archive = (channel: string, out: string, ...args: string[]): Promise<CliResult> =>
  session.run(['archive', channel, '--out', out, ...args], variables());

interface Index {
  channel: { handle: string };
  format: string;
  languages: string[];
  summary: { total: number; succeeded: number; failed: number; pending: number };
  videos: { videoId: string; file: string | null; error: { code: string; retryable: boolean } | null }[];
}

const indexOf = (out: string): Index => JSON.parse(readFileSync(join(out, 'index.json'), 'utf8')) as Index;
/** The files of an archive without its index. */
const filesOf = (out: string): string[] => readdirSync(out).filter((name) => name !== 'index.json');

/** The videos whose players were requested since the last reset. */
const videosRead = (): Set<string | null> =>
  new Set(youtube.requests.list.filter(({ kind }) => kind === 'player').map(({ videoId }) => videoId));

/** Whether it succeeded; a test that mounts also unmounts. */
function mountSmallDisk(directory: string): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'test', directory]).status === 0;
}

/** Root may mount, but not in every container. */
function canMount(): boolean {
  const directory = newDirectory();
  mkdirSync(directory, { recursive: true });
  const mounted = mountSmallDisk(directory);
  if (mounted) spawnSync('umount', [directory]);
  rmSync(directory, { recursive: true });
  return mounted;
}

describe('the command archive', () => {
  it('writes a file for each video that has a transcript, and the reasons of the others to the index', async () => {
    const out = newDirectory();
    const { code, output, errorOutput } = await archive('@harbourlight', out, '--json');
    expect(code).toBe(1);
    expect(errorOutput).toMatch(/^error: YouTube did not serve 3 of the videos\. Run the same command again/m);
    const { channel, summary, videos } = indexOf(out);
    expect(channel.handle).toBe('@harbourlight');
    expect(videos).toHaveLength(32);
    expect(summary).toEqual({
      total: 32,
      succeeded: filesOf(out).length,
      failed: 32 - filesOf(out).length,
      pending: 0,
    });
    expect(summary.failed).toBeGreaterThan(0);
    for (const { videoId, file, error } of videos) {
      expect([file === null, error === null]).toEqual(error ? [true, false] : [false, true]);
      if (file === null) continue;
      expect(file).toMatch(/^(\d{4}-\d\d-\d\d|\d{5}) /);
      const entry = JSON.parse(readFileSync(join(out, file), 'utf8')) as Record<string, unknown>;
      expect(Object.keys(entry)).toEqual(['videoId', 'ok', 'metadata', 'transcript', 'cached']);
      expect(entry['videoId']).toBe(videoId);
    }
    expect(JSON.parse(output)).toMatchObject({ directory: out, written: filesOf(out).length, summary });
    expect(errorOutput).toMatch(/^Listing uploads: 32\n/);
  });

  it('reads the list to the end of the archive, and a further run fetches nothing', async () => {
    const out = newDirectory();
    const options = ['--format', 'markdown', '--languages', 'en'];
    expect(await archive('@fogsignalradio', out, ...options)).toMatchObject({ code: 0 });
    expect(indexOf(out).summary.total).toBe(230);
    const files = filesOf(out);
    expect(files.length).toBe(indexOf(out).summary.succeeded);
    for (const file of files) expect(readFileSync(join(out, file), 'utf8')).toMatch(/^# .+\n\n<https:/);
    youtube.requests.clear();
    const again = await archive('@fogsignalradio', out, ...options);
    expect(again).toMatchObject({ code: 0 });
    expect(again.output).toMatch(/, 0 of them new\.$/m);
    expect(filesOf(out)).toEqual(files);
    expect(videosRead()).toEqual(new Set());
  });

  it('fetches only what the directory lacks, and keeps the files beyond the limit in the index', async () => {
    const out = newDirectory();
    await archive('@tidewater', out);
    const [removed = ''] = filesOf(out);
    const before = indexOf(out).videos;
    const { videoId } = before.find(({ file }) => file === removed) ?? { videoId: '' };
    rmSync(join(out, removed));
    // As after a process that was killed while it wrote a file and before it wrote the index.
    rmSync(join(out, 'index.json'));
    const { pid } = spawnSync(process.execPath, ['--version']);
    writeFileSync(join(out, `.${pid}-file-7.part`), 'half');
    youtube.requests.clear();
    expect(await archive('@tidewater', out)).toMatchObject({ code: 0 });
    expect(videosRead()).toEqual(new Set([videoId]));
    expect(indexOf(out).videos.map((video) => video.videoId)).toEqual(before.map((video) => video.videoId));
    expect(filesOf(out)).toHaveLength(5);
    await archive('@tidewater', out, '--limit', '2');
    expect(indexOf(out).summary).toEqual({ total: 5, succeeded: 5, failed: 0, pending: 0 });
  });

  it('ends cleanly on a signal, and the same command continues', async () => {
    const out = newDirectory();
    const served = 10;
    // The ID of a generated video ends with its number, A is 0: the first 20 of the 60 videos are served.
    const hold = youtube.hold({ kind: 'timedtext', path: '[?&]v=bnAA8AAeAA[U-Za-z0-9]' });
    const child = startCli(['archive', '@bench-60x30', '--out', out], {
      ...variables(),
      UPSTREAM_CONCURRENCY: '64',
    });
    const closed = once(child, 'close');
    let errorOutput = '';
    child.stderr.on('data', (text) => (errorOutput += String(text)));
    try {
      await until(() => existsSync(out) && filesOf(out).filter((name) => !name.startsWith('.')).length >= served);
    } finally {
      child.kill('SIGINT');
    }
    expect(await closed).toEqual([130, null]);
    hold.release();
    expect(errorOutput).toMatch(
      /\nStopped\. \d+ of 60 videos have a file\. Run the same command again to continue\.\n$/,
    );
    const files = filesOf(out);
    for (const file of files) expect(JSON.parse(readFileSync(join(out, file), 'utf8'))).toMatchObject({ ok: true });
    const { summary, videos } = indexOf(out);
    expect(summary).toEqual({ total: 60, succeeded: files.length, failed: 0, pending: 60 - files.length });
    youtube.reset();
    expect(await archive('@bench-60x30', out)).toMatchObject({ code: 0 });
    expect(indexOf(out).summary).toEqual({ total: 60, succeeded: 60, failed: 0, pending: 0 });
    const stored = new Set(videos.filter(({ file }) => file !== null).map(({ videoId }) => videoId));
    expect([...videosRead()].filter((videoId) => stored.has(String(videoId)))).toEqual([]);
  });

  it('retries in the next run what YouTube did not serve', async () => {
    const out = newDirectory();
    youtube.setFaults({ kind: '500', match: { kind: 'timedtext', path: 'v=tw-tea_____' } });
    const { code, errorOutput } = await archive('@tidewater', out);
    expect(code).toBe(1);
    expect(errorOutput).toMatch(/\nerror: YouTube did not serve 1 of the videos\. Run the same command again/);
    expect(indexOf(out).summary).toMatchObject({ succeeded: 4, failed: 1 });
    youtube.reset();
    expect(await archive('@tidewater', out)).toMatchObject({ code: 0 });
    expect(videosRead()).toEqual(new Set(['tw-tea_____']));
    expect(indexOf(out).summary).toMatchObject({ succeeded: 5, failed: 0 });
  });

  it('stops when YouTube blocks the requests, and continues when it does no more', async () => {
    const out = newDirectory();
    youtube.setFaults({ kind: 'bot-check', match: { kind: ['player', 'reel'] } });
    const { code, errorOutput } = await archive('@bench-80x31', out);
    expect(code).toBe(1);
    expect(errorOutput).toMatch(
      /\nerror: YouTube blocks the requests from this address\. 0 of 80 videos have a file\./,
    );
    expect(indexOf(out).summary).toEqual({ total: 80, succeeded: 0, failed: 0, pending: 80 });
    youtube.reset();
    expect(await archive('@bench-80x31', out)).toMatchObject({ code: 0 });
    expect(indexOf(out).summary).toMatchObject({ succeeded: 80 });
  });

  it.each<[what: string, channel: string, args: string[], line: RegExp]>([
    ['an unknown channel', '@no-such-channel', [], /^error: Channel not found\./],
    ['a malformed reference', 'https://example.com/a', [], /^error: Channel not found\./],
    ['a limit of 0', '@tidewater', ['--limit', '0'], /Use an integer of at least 1\.\n$/],
    ['an unknown format', '@tidewater', ['--format', 'srt'], /Allowed choices are json, markdown\.\n$/],
    ['malformed languages', '@tidewater', ['--languages', 'e'], /^error: languages must be/],
  ])('ends with one line for %s, and creates no directory', async (_what, channel, args, line) => {
    const out = newDirectory();
    const { code, output, errorOutput } = await archive(channel, out, ...args);
    expect([code, output]).toEqual([1, '']);
    expect(errorOutput).toMatch(line);
    expect(errorOutput.trim().split('\n')).toHaveLength(1);
    expect(existsSync(out)).toBe(false);
  });

  it('refuses a directory with something else, and changes nothing there', async () => {
    const out = newDirectory();
    await archive('@tidewater', out, '--limit', '1');
    const before = readFileSync(join(out, 'index.json'), 'utf8');
    const [file, foreign] = [newDirectory(), newDirectory()];
    writeFileSync(file, '');
    mkdirSync(foreign);
    writeFileSync(join(foreign, 'index.json'), '{"name":"my-project"}');
    const refused: [channel: string, out: string, args: string[], line: RegExp][] = [
      ['@emptyslip', out, [], /has the archive of Tidewater Kitchen \(UC/],
      ['@tidewater', out, ['--format', 'markdown'], /has files in the format json\. Use --format json or/],
      ['@tidewater', out, ['--languages', 'de'], /has other languages\. Use no --languages or/],
      ['@tidewater', foreign, [], /index\.json is not the index of an archive\. Choose another directory\./],
      ['@tidewater', file, [], /is not a directory\./],
      ['@tidewater', join(file, 'below'), [], /is not a directory\./],
    ];
    for (const [channel, path, args, line] of refused) {
      const { code, errorOutput } = await archive(channel, path, ...args);
      expect([code, errorOutput.trim().split('\n').length]).toEqual([1, 1]);
      expect(errorOutput).toMatch(line);
    }
    expect(readFileSync(join(out, 'index.json'), 'utf8')).toBe(before);
    expect(readdirSync(foreign)).toEqual(['index.json']);
  });

  (canMount() ? it : it.skip)('ends with one line when the disk is full or read-only, without half files', async () => {
    const out = newDirectory();
    mkdirSync(out);
    expect(mountSmallDisk(out)).toBe(true);
    try {
      const full = await archive('@bench-20x300', out);
      expect(full).toMatchObject({ code: 1, output: '' });
      expect(full.errorOutput).toMatch(/\nerror: .* is on a full disk\. Free some space, then run the same command/);
      for (const file of filesOf(out)) expect(JSON.parse(readFileSync(join(out, file), 'utf8'))).toBeDefined();
      expect(spawnSync('mount', ['-o', 'remount,ro', out]).status).toBe(0);
      const readOnly = await archive('@bench-20x300', out);
      expect(readOnly).toMatchObject({ code: 1, output: '' });
      expect(readOnly.errorOutput).toMatch(/cannot be written: the file system is read-only\.\n$/);
    } finally {
      spawnSync('umount', [out]);
    }
  });
});
