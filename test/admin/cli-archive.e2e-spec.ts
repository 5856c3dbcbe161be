import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { temporaryFolder } from '../process/program.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { until } from '../harness/until.js';
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

let directories = 0;
const newDirectory = (): string => join(folder.path, `archive-${(directories += 1)}`);

const variables = (): Record<string, string> => ({
  YOUTUBE_BASE_URL: youtube.url,
  UPSTREAM_RETRIES: '0',
  DATABASE_URL: database.url,
});
const archive = (channel: string, out: string, ...args: string[]): Promise<CliResult> =>
  session.run(['archive', channel, '--out', out, ...args], variables());

interface Index {
  channel: { handle: string };
  unfinishedJob: string | null;
  videos: { videoId: string; file: string | null; error: { code: string; retryable: boolean } | null }[];
}

const indexOf = (out: string): Index => JSON.parse(readFileSync(join(out, 'index.json'), 'utf8')) as Index;
/** The complete files of an archive without its index. */
const filesOf = (out: string): string[] =>
  existsSync(out) ? readdirSync(out).filter((name) => name !== 'index.json' && !name.startsWith('.')) : [];

/** The videos whose players were requested since the last reset. */
const videosRead = (): Set<string | null> =>
  new Set(youtube.requests.list.filter(({ kind }) => kind === 'player').map(({ videoId }) => videoId));

/** Starts the command in a process of its own. @returns also the promise of its exit code or signal, and its error output */
function start(channel: string, out: string) {
  const child = startCli(['archive', channel, '--out', out], variables());
  return { child, closed: once(child, 'close'), errorOutput: text(child.stderr) };
}

describe('the command archive of a playlist', () => {
  it('writes a file for each video with its texts as wanted, and the index in its order', async () => {
    const out = newDirectory();
    const options = ['--chunk-seconds', '600', '--include', 'description'];
    const { code, output } = await archive(SATURDAY.id, out, ...options, '--json');
    expect([code, JSON.parse(output)]).toMatchObject([0, { channel: null, playlist: { id: SATURDAY.id }, written: 5 }]);
    const index = JSON.parse(readFileSync(join(out, 'index.json'), 'utf8')) as Record<string, unknown>;
    expect(index).toMatchObject({
      channel: null,
      playlist: { title: SATURDAY.title },
      chunkSeconds: 600,
      unfinishedJob: null,
    });
    const { videos } = indexOf(out);
    expect(videos.map(({ videoId }) => videoId)).toEqual(SATURDAY.videos().map(({ id }) => id));
    for (const file of filesOf(out)) {
      const entry = JSON.parse(readFileSync(join(out, file), 'utf8')) as Record<string, Record<string, unknown>>;
      expect(entry['metadata']).toHaveProperty('description');
      expect(Object.values(entry['transcript'] ?? {})).toMatchObject([{ length: 1 }]);
    }
    const other = await archive(SATURDAY.id, out, '--match', 'first');
    expect(other.errorOutput).toMatch(/an archive with --format json --include description --chunk-seconds 600\./);
    expect((await archive('@tidewater', out, ...options)).errorOutput).toMatch(/the archive of A Saturday in the yard/);
    expect((await archive(SATURDAY.id, out, ...options)).output).toMatch(/5 of 5 .* 0 new files/);
  });

  it('writes Markdown as a call responds it, with the same options', async () => {
    const out = newDirectory();
    const options = ['--format', 'markdown', '--languages', 'de,en', '--match', 'first'];
    options.push('--include', 'description,chapters,tags', '--chunk-seconds', '600');
    expect(await archive(SATURDAY.id, out, ...options)).toMatchObject({ code: 0 });
    for (const { videoId, file } of indexOf(out).videos) {
      const url = `https://www.youtube.com/watch?v=${videoId}`;
      const { output } = await session.run(['transcripts', url, ...options], variables());
      expect(output).toContain('Description:');
      // The third line has the age of the video, which only a list states.
      const bodyOf = (text: string): string[] => text.split('\n').slice(3);
      expect(bodyOf(readFileSync(join(out, file ?? ''), 'utf8'))).toEqual(bodyOf(output));
    }
  });

  it('that is unknown, or a mix, is an error of one line', async () => {
    expect((await archive('PLnobodyhasaplaylistwiththisname', newDirectory())).errorOutput).toMatch(
      /^error: Playlist not found\..*\n$/,
    );
    expect((await archive('RDabcdefghijk', newDirectory())).errorOutput).toMatch(/^error: A mix.*\n$/);
  });
});

describe('the command archive', () => {
  it('takes only the kinds that are wanted', async () => {
    const out = newDirectory();
    await archive('@harbourlight', out, '--kinds', 'short');
    expect(filesOf(out).length).toBeGreaterThan(0);
    expect(filesOf(out).length).toBeLessThan(5);
  });

  it('writes a file for each video that has a transcript, tries the others later, and has their reasons in the index', async () => {
    const out = newDirectory();
    const { code, output, errorOutput } = await archive('@harbourlight', out, '--json');
    expect(code).toBe(1);
    expect(errorOutput).toMatch(/^error: 6 videos could not be read yet\. Run the same command again in 10 min/m);
    expect(errorOutput.match(/hl-\S{8} \((?:video|upstream|transcript)_\w+\)/g)).toHaveLength(6);
    expect(errorOutput).toMatch(/ min to retry: .*hl-tidecam_ \(video_live\)/);
    const files = filesOf(out);
    expect(JSON.parse(output)).toMatchObject({
      directory: out,
      written: files.length,
      summary: { total: 32, succeeded: files.length, failed: 26 - files.length, pending: 6 },
    });
    for (const later of ['11 minutes', '2 hours', '9 hours']) {
      await database.dataSource.query(`UPDATE jobs SET next_run_at = next_run_at - interval '${later}'`);
      await database.dataSource.query(`UPDATE job_videos SET retry_at = retry_at - interval '${later}'`);
      await archive('@harbourlight', out);
    }
    const { channel, unfinishedJob, videos } = indexOf(out);
    expect([channel.handle, unfinishedJob, videos.length]).toEqual(['@harbourlight', null, 32]);
    expect(filesOf(out)).toEqual(files);
    for (const { videoId, file, error } of videos) {
      expect(file === null).toBe(error !== null);
      if (file === null) continue;
      const entry = JSON.parse(readFileSync(join(out, file), 'utf8')) as Record<string, unknown>;
      expect(Object.keys(entry)).toEqual(['videoId', 'ok', 'metadata', 'transcript', 'cached']);
      expect(entry['videoId']).toBe(videoId);
    }
  });

  it('runs no job of another organization of the same database', async () => {
    const { organizationId, keyId } = await database.newCustomer();
    await database.dataSource.query(
      `INSERT INTO jobs (id, organization_id, key_id, results_seconds, request, created_at, next_run_at)
         VALUES ('job_of_a_customer', $1, $2, 1, '{}', clock_now(), clock_now())`,
      [organizationId, keyId],
    );
    expect((await archive('@tidewater', newDirectory())).code).toBe(0);
    expect(
      await database.dataSource.query('SELECT id, started_at FROM jobs WHERE organization_id = $1', [organizationId]),
    ).toEqual([{ id: 'job_of_a_customer', started_at: null }]);
  });

  it('reads the list to its end, and a further run takes only the newer uploads', async () => {
    const out = newDirectory();
    const options = ['--format', 'markdown', '--languages', 'en'];
    expect(await archive('@fogsignalradio', out, ...options)).toMatchObject({ code: 0 });
    const { videos } = indexOf(out);
    expect(videos).toHaveLength(230);
    const files = filesOf(out);
    expect(files).toHaveLength(230);
    for (const file of files) expect(readFileSync(join(out, file), 'utf8')).toMatch(/^# .+\n\n<https:/);
    // As if the newest three had been uploaded since.
    const index = { ...indexOf(out), videos: videos.slice(3) };
    for (const { file } of videos.slice(0, 3)) rmSync(join(out, file ?? ''));
    writeFileSync(join(out, 'index.json'), JSON.stringify(index));
    youtube.requests.clear();
    const again = await archive('@fogsignalradio', out, ...options);
    expect(again).toMatchObject({ code: 0 });
    expect(again.output).toMatch(/: 3 of 3 videos have a transcript, 3 new files in /);
    expect(filesOf(out).sort()).toEqual([...files].sort());
    expect(indexOf(out).videos).toEqual(videos);
    expect(videosRead()).toEqual(new Set(videos.slice(0, 3).map(({ videoId }) => videoId)));
  });

  it('keeps the file of a video that fails now', async () => {
    const out = newDirectory();
    // A younger one would be tried again.
    youtube.publish({ channel: '@3-videos-no-46', publishedAt: new Date(Date.now() - 60 * 86_400_000) });
    await archive('@3-videos-no-46', out, '--limit', '2');
    const [before] = indexOf(out).videos;
    youtube.changeVideos({ videoIds: [before?.videoId ?? ''], as: 'members-only' });
    await archive('@3-videos-no-46', out);
    expect(indexOf(out).videos).toHaveLength(4);
    expect(indexOf(out).videos[0]).toEqual(before);
    expect(filesOf(out)).toHaveLength(4);
  });

  it('writes only the files that a directory without an index lacks', async () => {
    const out = newDirectory();
    await archive('@tidewater', out);
    const [removed = '', stored = ''] = filesOf(out);
    rmSync(join(out, removed));
    rmSync(join(out, 'index.json'));
    writeFileSync(join(out, stored), 'unchanged');
    const { code, output } = await archive('@tidewater', out);
    expect(code).toBe(0);
    expect(output).toMatch(/: 5 of 5 videos have a transcript, 1 new file in /);
    expect(filesOf(out)).toHaveLength(5);
    expect(readFileSync(join(out, stored), 'utf8')).toBe('unchanged');
  });

  it('keeps a file whose name is another one than it would have now', async () => {
    const out = newDirectory();
    await archive('@tidewater', out);
    const index = indexOf(out);
    const [first] = index.videos;
    const renamed = `-rf --help [${first?.videoId ?? ''}].json`;
    renameSync(join(out, first?.file ?? ''), join(out, renamed));
    const videos = index.videos.map((video, at) => (at === 0 ? { ...video, file: renamed } : video));
    writeFileSync(join(out, 'index.json'), JSON.stringify({ ...index, videos }));
    // With another limit the job takes all videos.
    expect((await archive('@tidewater', out, '--limit', '9')).output).toMatch(/5 of 5 .*, 0 new files in /);
    expect(filesOf(out)).toHaveLength(5);
    expect(filesOf(out)).toContain(renamed);
  });

  it('takes what is listed when the list ends early, and the rest with the next run', async () => {
    const out = newDirectory();
    youtube.set({ listEndsAt: 3 });
    const { code, errorOutput } = await archive('@tidewater', out);
    expect([code, filesOf(out).length]).toEqual([1, 3]);
    expect(errorOutput).toMatch(
      /^error: The rest of the list could not be read yet\. Run the same command again in 10 min/m,
    );
    youtube.reset();
    expect(await archive('@tidewater', out)).toMatchObject({ code: 0 });
    expect(filesOf(out)).toHaveLength(5);
  });

  it('takes the older uploads as well when the limit grows, also when that was stopped once', async () => {
    const out = newDirectory();
    await archive('@tidewater', out, '--limit', '2');
    expect(filesOf(out)).toHaveLength(2);
    const before = indexOf(out);
    const hold = youtube.hold({ kind: 'timedtext' });
    const stopped = archive('@tidewater', out);
    await hold.arrived;
    await session.signal('SIGINT');
    expect((await stopped).code).toBe(1);
    hold.release();
    expect(indexOf(out)).toEqual({ ...before, unfinishedJob: expect.stringMatching(/^job_/) });
    expect((await archive('@tidewater', out)).output).toMatch(/: 5 of 5 videos have a transcript, 3 new files in /);
    expect(
      indexOf(out)
        .videos.map(({ file }) => file)
        .sort(),
    ).toEqual(filesOf(out).sort());
  });

  it('ends cleanly on a signal, and the same command continues', async () => {
    const out = newDirectory();
    // The ID of a generated video ends with its number, A is 0: the first slice of 25 and five more videos are served.
    const hold = youtube.hold({ kind: 'timedtext', path: '[?&]v=vdAA8AAeAA[e-z0-9]' });
    const { child, closed, errorOutput } = start('@60-videos-no-30', out);
    try {
      await until(() => filesOf(out).length >= 25);
      await hold.arrived;
    } finally {
      child.kill('SIGINT');
    }
    expect(await closed).toEqual([1, null]);
    hold.release();
    expect(await errorOutput).toMatch(
      /^error: Stopped: \d+ of 60 videos have a file\. Run the same command again to continue\.\n$/m,
    );
    const files = filesOf(out);
    expect(files.length).toBeLessThan(60);
    const [job] = await database.dataSource.query<{ id: string; state: string; fetched: number }[]>(
      'SELECT * FROM jobs WHERE total = 60',
    );
    expect(job).toMatchObject({ state: 'canceled', fetched: files.length });
    expect(indexOf(out)).toMatchObject({ channel: { handle: '@60-videos-no-30' }, unfinishedJob: job?.id, videos: [] });
    const refused = await archive('@tidewater', out);
    expect(refused).toMatchObject({
      code: 1,
      errorOutput: expect.stringMatching(/has the archive of .* \(UC.{22}\)\./),
    });
    expect((await archive('@60-videos-no-30', out, '--format', 'markdown')).errorOutput).toContain(
      'with --format json',
    );
    expect(filesOf(out)).toEqual(files);
    youtube.reset();
    expect(await archive('@60-videos-no-30', out)).toMatchObject({ code: 0 });
    expect([indexOf(out).videos.length, filesOf(out).length]).toEqual([60, 60]);
    expect(videosRead().size).toBe(60 - files.length);
  });

  it('says what it waits for when the limit is used up, and goes on when that is raised', async () => {
    await archive('@tidewater', newDirectory(), '--limit', '1');
    const setLimit = (limit: number | null) =>
      database.dataSource.query("UPDATE organizations SET monthly_limit = $1 WHERE id = 'org_commands'", [limit]);
    await setLimit(0);
    const out = newDirectory();
    const { child, closed, errorOutput } = start('@2-videos-no-32', out);
    try {
      await once(child.stderr, 'readable');
    } finally {
      await setLimit(null);
    }
    expect(await closed).toEqual([0, null]);
    expect(await errorOutput).toMatch(
      /^The monthly limit of 0 transcripts is used up\. Waiting until \S+Z or until `org set-limit org_commands` raises it\.\n$/,
    );
    expect(filesOf(out)).toHaveLength(2);
  });

  it('continues after kill -9, without a file twice or half a file', async () => {
    const out = newDirectory();
    const hold = youtube.hold({ kind: 'timedtext', path: '[?&]v=vdABQAAfAA[Z-z0-9]' });
    const { child, closed } = start('@80-videos-no-31', out);
    try {
      await until(() => filesOf(out).length >= 10);
    } finally {
      child.kill('SIGKILL');
    }
    expect(await closed).toEqual([null, 'SIGKILL']);
    await endOtherConnections(database.dataSource);
    hold.release();
    const files = new Set(filesOf(out));
    // The claim of the killed process ends with its lease.
    await database.dataSource.query('UPDATE jobs SET claimed_until = clock_now() WHERE claim IS NOT NULL');
    expect(await archive('@80-videos-no-31', out)).toMatchObject({ code: 0 });
    expect([indexOf(out).videos.length, filesOf(out).length]).toEqual([80, 80]);
    expect(filesOf(out).filter((name) => files.has(name))).toHaveLength(files.size);
    for (const file of filesOf(out))
      expect(JSON.parse(readFileSync(join(out, file), 'utf8'))).toMatchObject({ ok: true });
  });

  it.each<[what: string, channel: string, args: string[], line: RegExp]>([
    ['an unknown channel', '@no-such-channel', [], /^error: Channel not found\. Use a channel .* or a playlist/],
    ['a video', 'https://youtu.be/tw-tea_____', [], /^error: Channel not found\. .*; for a video use transcripts\.\n$/],
    ['a malformed reference', 'https://example.com/a', [], /^error: Channel not found\./],
    ['a limit of 0', '@tidewater', ['--limit', '0'], /limit must be an integer from 1 to 2147483647\.\n$/],
    ['an unknown format', '@tidewater', ['--format', 'srt'], /Allowed choices are json, markdown\.\n$/],
    ['malformed languages', '@tidewater', ['--languages', 'e'], /is invalid\. languages must be/],
  ])('ends with one line for %s, and creates no directory', async (_what, channel, args, line) => {
    const out = newDirectory();
    const { code, output, errorOutput } = await archive(channel, out, ...args);
    expect([code, output]).toEqual([1, '']);
    expect(errorOutput).toMatch(line);
    expect(errorOutput.trim().split('\n')).toHaveLength(1);
    expect(existsSync(out)).toBe(false);
  });

  it('writes nothing outside of its directory, whatever the index and the links there name', async () => {
    const out = newDirectory();
    const outside = join(folder.path, 'outside.json');
    await archive('@tidewater', out, '--limit', '1');
    const path = join(out, 'index.json');
    const index = indexOf(out);
    const [video] = index.videos;
    for (const changed of [
      { file: '../outside.json' },
      { file: outside },
      { file: `../[${video?.videoId}].json` },
      { file: '..' },
      { videoId: '../outside' },
    ]) {
      writeFileSync(path, JSON.stringify({ ...index, videos: [{ ...video, ...changed }] }));
      const { code, errorOutput } = await archive('@tidewater', out);
      expect([code, errorOutput]).toEqual([1, expect.stringMatching(/index\.json is not the index of an archive\./)]);
    }
    writeFileSync(path, JSON.stringify(index));
    symlinkSync(outside, join(out, '.unfinished'));
    expect(await archive('@tidewater', out)).toMatchObject({ code: 0 });
    expect([existsSync(outside), filesOf(out).length]).toEqual([false, 5]);
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
      ['@tidewater', out, ['--format', 'markdown'], /an archive with --format json\. Use the same/],
      ['@tidewater', out, ['--languages', 'de'], /an archive with --format json\. Use the same/],
      ['@tidewater', foreign, [], /index\.json is not the index of an archive\. Choose another directory\./],
      ['@tidewater', file, [], /EEXIST|ENOTDIR/],
    ];
    for (const [channel, path, args, line] of refused) {
      const { code, errorOutput } = await archive(channel, path, ...args);
      expect([code, errorOutput.trim().split('\n').length]).toEqual([1, 1]);
      expect(errorOutput).toMatch(line);
    }
    expect(readFileSync(join(out, 'index.json'), 'utf8')).toBe(before);
    expect(readdirSync(foreign)).toEqual(['index.json']);
  });
});
