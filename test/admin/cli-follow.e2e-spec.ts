import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { until } from '../harness/until.js';
import { temporaryFolder } from '../process/program.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { type CliResult, CliSession, endOtherConnections, startCli } from './run-cli.js';

const folder = temporaryFolder();
let session: CliSession;
let youtube: FakeYoutube;
let database: QuotaDatabase;
beforeAll(async () => {
  session = new CliSession();
  youtube = await startFakeYoutube();
  database = await QuotaDatabase.open();
});
afterAll(async () => {
  session.close();
  await youtube.close();
  await database.close();
  folder.remove();
});
beforeEach(() => youtube.reset());

const started = new Set<ChildProcess>();
let running: Promise<CliResult> | undefined;
// A test that fails leaves none, which would disturb the next one.
afterEach(async () => {
  started.forEach((child) => child.kill('SIGKILL'));
  if (running) await session.signal('SIGINT');
});

let directories = 0;
const newDirectory = (): string => join(folder.path, `follow-${(directories += 1)}`);

const variables = () => ({ YOUTUBE_BASE_URL: youtube.url, UPSTREAM_RETRIES: '0', DATABASE_URL: database.url });
/** Runs a command that ends by itself. */
const run = (...args: string[]): Promise<CliResult> => session.run(args, variables());
/** Starts the command in the session. */
function start(channel: string, out: string, ...args: string[]): void {
  running = session.run(['follow', channel, '--out', out, ...args], variables()).finally(() => (running = undefined));
}
/** Ends the command in the session, and returns what it has written to standard error. */
async function stop(): Promise<string> {
  const { code, errorOutput } = await session.signal('SIGINT');
  expect(code).toBe(0);
  return errorOutput;
}
/** Starts the command in a process of its own. @returns also the promise of its exit code or signal, and its outputs */
function follow(channel: string, out: string, ...args: string[]) {
  const child = startCli(['follow', channel, '--out', out, ...args], variables());
  started.add(child);
  return { child, closed: once(child, 'close'), output: text(child.stdout), errorOutput: text(child.stderr) };
}

/** The names of the files of a directory, and when each was written. */
const filesOf = (out: string): Map<string, number> =>
  new Map(
    existsSync(out)
      ? readdirSync(out)
          .filter((name) => name !== 'index.json' && !name.startsWith('.'))
          .map((name) => [name, statSync(join(out, name)).mtimeMs])
      : [],
  );
const idsOf = (out: string): string[] =>
  [...filesOf(out).keys()].map((name) => / (.{11})\.\w+$/.exec(name)?.[1] ?? name).sort();

interface Index {
  subscription: { id: string; after: string } | null;
  videos: { videoId: string; file: string | null; error: { code: string } | null }[];
}
const indexOf = (out: string): Index => JSON.parse(readFileSync(join(out, 'index.json'), 'utf8')) as Index;

describe('the command follow', () => {
  it('writes each new upload once, also those that came while it was killed or stopped', async () => {
    const out = newDirectory();
    const first = follow('@tidewater', out, '--start', '2', '--format', 'markdown');
    await until(() => filesOf(out).size === 2 && indexOf(out).videos.length === 2);
    first.child.kill('SIGKILL');
    expect(await first.closed).toEqual([null, 'SIGKILL']);
    await endOtherConnections(database.dataSource);
    const before = filesOf(out);
    const published = youtube.publish({ channel: '@tidewater', count: 3 });
    // As if the run had been killed between the files and the place in the feed, and its last claim had ended.
    await database.dataSource.query(
      `UPDATE jobs SET claimed_until = CASE WHEN claim IS NULL THEN claimed_until ELSE clock_now() END, check_requested_at = NULL;
       UPDATE sources SET claimed_until = clock_now()`,
    );
    const hold = youtube.hold({ kind: 'timedtext' }, 1);
    const second = follow('https://www.youtube.com/@tidewater', out, '--format', 'markdown');
    await hold.arrived;
    second.child.kill('SIGKILL');
    expect(await second.closed).toEqual([null, 'SIGKILL']);
    await endOtherConnections(database.dataSource);
    hold.release();
    await database.dataSource.query(
      `UPDATE jobs SET claimed_until = clock_now(), check_requested_at = NULL WHERE claim IS NOT NULL;
       UPDATE sources SET claimed_until = clock_now()`,
    );
    const third = follow('@tidewater', out, '--format', 'markdown');
    await until(() => indexOf(out).videos.length === 5);
    third.child.kill('SIGINT');
    expect(await third.closed).toEqual([0, null]);
    expect(await third.output).toMatch(
      /: 5 complete \(3 new\), 0 late, 0 failed in .*\.\nStopped\. The same command continues\.\n$/,
    );
    const later = youtube.publish({ channel: '@tidewater', count: 1 });
    const last = follow('@tidewater', out, '--format', 'markdown', '--check-minutes', '15');
    await until(() => indexOf(out).videos.length === 6);
    last.child.kill('SIGTERM');
    expect(await last.closed).toEqual([0, null]);
    expect(idsOf(out)).toEqual([...published, ...later, 'tw-bread___', 'tw-chowder_'].sort());
    for (const [file, writtenAt] of before) expect(filesOf(out).get(file)).toBe(writtenAt);
    const subscriptions = await database.dataSource.query<object[]>(
      'SELECT id, state, reason, fetched, check_seconds FROM jobs WHERE check_seconds IS NOT NULL',
    );
    const { subscription } = indexOf(out);
    expect(subscriptions).toEqual([
      { id: subscription?.id, state: 'paused', reason: 'paused_by_caller', fetched: 6, check_seconds: 900 },
    ]);
    expect(subscription?.after).toMatch(/^6\./);
  });

  it('goes on from an archive, above its newest video', async () => {
    const out = newDirectory();
    expect(await run('archive', '@3-videos-no-41', '--out', out)).toMatchObject({ code: 0 });
    const videoIds = youtube.publish({ channel: '@3-videos-no-41', count: 1 });
    start('@3-videos-no-41', out);
    await until(() => indexOf(out).videos.length === 4);
    await stop();
    expect(indexOf(out).videos[0]?.videoId).toBe(videoIds[0]);
    expect(filesOf(out).size).toBe(4);
  });

  it('leaves its pending uploads to an archive in the same directory', async () => {
    const out = newDirectory();
    expect(await run('archive', '@3-videos-no-43', '--out', out)).toMatchObject({ code: 0 });
    const [premiere = ''] = youtube.publish({ channel: '@3-videos-no-43', count: 1, as: 'premiere' });
    const [ready] = youtube.publish({ channel: '@3-videos-no-43', count: 1 });
    start('@3-videos-no-43', out);
    await until(() => indexOf(out).videos.length === 4);
    await stop();
    expect(indexOf(out).videos[0]?.videoId).toBe(ready);
    youtube.changeVideos({ videoIds: [premiere], as: 'video' });
    expect(await run('archive', '@3-videos-no-43', '--out', out)).toMatchObject({ code: 0 });
    expect(idsOf(out)).toContain(premiere);
    expect(filesOf(out).size).toBe(5);
  });

  it('loses no upload when its subscription was deleted', async () => {
    const out = newDirectory();
    start('@3-videos-no-44', out, '--start', '1');
    await until(() => existsSync(join(out, 'index.json')) && indexOf(out).videos.length === 1);
    const [pending = ''] = youtube.publish({ channel: '@3-videos-no-44', count: 1, as: 'premiere' });
    const [ready] = youtube.publish({ channel: '@3-videos-no-44', count: 1 });
    await database.dataSource.query(
      'UPDATE sources SET next_check_at = clock_now() FROM jobs WHERE jobs.id = $1 AND sources.id = source_id',
      [indexOf(out).subscription?.id],
    );
    await until(() => indexOf(out).videos.length === 2);
    expect(indexOf(out).videos[0]?.videoId).toBe(ready);
    await stop();
    await database.dataSource.query('DELETE FROM jobs WHERE id = $1', [indexOf(out).subscription?.id]);
    youtube.changeVideos({ videoIds: [pending], as: 'video' });
    start('@3-videos-no-44', out);
    await until(() => indexOf(out).videos.length === 3);
    await stop();
    expect(idsOf(out)).toContain(pending);
  });

  it('goes on with the oldest stored result when those after its place have expired, and says so once', async () => {
    const out = newDirectory();
    start('@3-videos-no-45', out, '--start', '2');
    await until(() => existsSync(join(out, 'index.json')) && indexOf(out).videos.length === 2);
    await stop();
    // As if the subscription had delivered both while the command did not run, and their time had passed.
    const index = indexOf(out);
    const { id } = index.subscription ?? {};
    writeFileSync(join(out, 'index.json'), JSON.stringify({ ...index, subscription: { id, after: 0 } }));
    await database.dataSource.query('DELETE FROM job_videos WHERE job_id = $1 AND sequence <= 2', [id]);
    await database.dataSource.query('UPDATE jobs SET expired_sequence = 2 WHERE id = $1', [id]);
    for (const warning of [/^warning: 2 results of @3-videos-no-45 expired before a run took them\. .*\n$/, /^$/]) {
      const [videoId = ''] = youtube.publish({ channel: '@3-videos-no-45', count: 1 });
      await database.dataSource.query('UPDATE jobs SET check_requested_at = NULL');
      start('@3-videos-no-45', out);
      await until(() => idsOf(out).includes(videoId));
      expect(await stop()).toMatch(warning);
    }
    expect(indexOf(out).subscription?.after).toMatch(/^4\./);
  });

  it('says once what it waits for when the limit is used up, and goes on when that is raised', async () => {
    const setLimit = (limit: number | null) =>
      database.dataSource.query("UPDATE organizations SET monthly_limit = $1 WHERE id = 'org_commands'", [limit]);
    await setLimit(0);
    const out = newDirectory();
    const { child, closed, errorOutput } = follow('@3-videos-no-46', out, '--start', '2');
    try {
      await once(child.stderr, 'readable');
    } finally {
      await setLimit(null);
    }
    await until(() => filesOf(out).size === 2);
    child.kill('SIGINT');
    expect(await closed).toEqual([0, null]);
    expect(await errorOutput).toMatch(/^The monthly limit of 0 transcripts is used up\. Waiting until \S+Z or .*\n$/);
  });

  it('ends with one line for what cannot be followed there, and leaves nothing', async () => {
    const out = newDirectory();
    const unknown = await run('follow', '@no-such-channel', '--out', out);
    expect([unknown.code, unknown.output]).toEqual([1, '']);
    expect(unknown.errorOutput).toMatch(/^error: @no-such-channel: Channel not found\..*\n$/);
    expect(existsSync(out)).toBe(false);
    expect(await run('archive', '@tidewater', '--out', out, '--limit', '1')).toMatchObject({ code: 0 });
    const index = readFileSync(join(out, 'index.json'), 'utf8');
    const other = await run('follow', '@2-videos-no-42', '--out', out);
    expect(other.code).toBe(1);
    expect(other.errorOutput).toMatch(/^error: @2-videos-no-42: .* has the archive of Tidewater Kitchen \(UC.*\n$/);
    expect(readFileSync(join(out, 'index.json'), 'utf8')).toBe(index);
    const wrong = await run('follow', '@tidewater', '--out', out, '--start', '0');
    expect(wrong.code).toBe(1);
    expect(wrong.errorOutput).toMatch(/start must be "now", an integer from 1 to 100 .* or the ID of a video/);
    expect(
      await database.dataSource.query(`SELECT id FROM jobs WHERE check_seconds IS NOT NULL AND state = 'running'`),
    ).toEqual([]);
  });
});
