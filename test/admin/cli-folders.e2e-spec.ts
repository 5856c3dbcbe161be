import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { temporaryFolder } from '../process/program.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { type CliResult, CliSession, startCli } from './run-cli.js';

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
const newDirectory = (): string => join(folder.path, `folder-${(directories += 1)}`);
const variables = () => ({ YOUTUBE_BASE_URL: youtube.url, UPSTREAM_RETRIES: '0', DATABASE_URL: database.url });
const run = (...args: string[]): Promise<CliResult> => session.run(args, variables());

/** The names of all files of videos in a directory and its folders. */
const filesOf = (out: string): string[] =>
  readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((name) => / .{11}\.\w+$/.test(name));

/** The IDs of the videos that were read since the last call, each as often as that was. */
function videosRead(): string[] {
  const read = youtube.requests.list.flatMap(({ kind, videoId }) => (kind === 'player' && videoId ? [videoId] : []));
  youtube.requests.clear();
  return read.sort();
}

describe('three runs of cron', () => {
  it('of follow --once read each new upload once, and what was late again', async () => {
    const out = newDirectory();
    const follow = () => run('follow', '@3-videos-no-50', '--out', out, '--once', '--start', '2');
    const first = await follow();
    expect([first.code, first.errorOutput]).toEqual([0, '']);
    expect(first.output).toMatch(/: 2 complete \(2 new\), 0 late, 0 failed in .*\.\n$/);
    expect(videosRead()).toHaveLength(2);

    const [ready = ''] = youtube.publish({ channel: '@3-videos-no-50', count: 1 });
    const [late = ''] = youtube.publish({ channel: '@3-videos-no-50', count: 1, as: 'uncaptioned' });
    const second = await follow();
    expect([second.code, second.errorOutput]).toEqual([2, '']);
    expect(second.output).toMatch(/: 3 complete \(1 new\), 1 late, 0 failed in /);
    expect(second.output.trim().split('\n').at(-1)).toContain(`next run: ${late} (transcript_unavailable).`);
    expect(new Set(videosRead())).toEqual(new Set([ready, late]));

    youtube.setFaults({ kind: '500', match: { kind: 'browse' } });
    const blocked = await follow();
    expect(blocked.code).toBe(2);
    expect(blocked.output).toMatch(/: 3 complete \(0 new\), .* The list could not be read to its end yet\./);
    youtube.setFaults();
    videosRead();

    youtube.changeVideos({ videoIds: [late], as: 'video' });
    const third = await follow();
    expect([third.code, third.errorOutput]).toEqual([0, '']);
    expect(third.output).toMatch(/: 4 complete \(1 new\), 0 late, 0 failed in /);
    expect(new Set(videosRead())).toEqual(new Set([late]));
    expect(filesOf(out)).toHaveLength(4);
  });

  it('of follow --once write what is added anywhere in a playlist, beside what an archive of it has', async () => {
    const out = newDirectory();
    const videoIds = SATURDAY.videos().map(({ id }) => id);
    expect(await run('archive', SATURDAY.id, '--out', out)).toMatchObject({ code: 0 });
    const follow = (reference: string) => run('follow', reference, '--out', out, '--once');
    const first = await follow(SATURDAY.id);
    expect([first.code, first.output]).toEqual([
      0,
      expect.stringMatching(/: 5 complete \(0 new\), 0 late, 0 failed in /),
    ]);
    videosRead();
    const [added = ''] = youtube.publish({ channel: '@3-videos-no-54', count: 1 });
    youtube.changePlaylist({ playlist: SATURDAY.id, videoIds: [...videoIds, added] });
    const second = await follow(`https://www.youtube.com/playlist?list=${SATURDAY.id}`);
    expect(second.output).toMatch(/^A Saturday in the yard: 6 complete \(1 new\), /);
    expect(new Set(videosRead())).toEqual(new Set([added]));
    expect(filesOf(out)).toHaveLength(6);
    const other = await follow('PLharbourlight-boats');
    expect([other.code, other.output]).toEqual([1, '']);
    expect(other.errorOutput).toMatch(/^error: PLharbourlight-boats: .* is the directory of another list\./);
    const unknown = await run('follow', 'PLno-such-playlist', '--out', newDirectory(), '--once');
    expect([unknown.code, unknown.output]).toEqual([1, '']);
    expect(unknown.errorOutput).toMatch(/^error: PLno-such-playlist: Playlist not found/);
  });

  it('of archive read a playlist once, and a channel beyond its list never again', async () => {
    const out = newDirectory();
    const archive = () => run('archive', SATURDAY.id, '--out', out, '--json');
    expect(JSON.parse((await archive()).output)).toMatchObject({ complete: 5, written: 5, late: 0, failed: 0 });
    expect(new Set(videosRead()).size).toBe(5);
    for (let again = 0; again < 2; again++) {
      expect(JSON.parse((await archive()).output)).toMatchObject({ complete: 5, written: 0 });
      expect(videosRead()).toEqual([]);
    }
    const channel = newDirectory();
    await run('archive', '@tidewater', '--out', channel, '--limit', '2');
    const before = new Set(videosRead());
    expect((await run('archive', '@tidewater', '--out', channel)).output).toMatch(/: 5 complete \(3 new\), /);
    expect(videosRead().filter((videoId) => before.has(videoId))).toEqual([]);
  });

  it('of archive try a late caption again, but not what has none for good', async () => {
    const out = newDirectory();
    const [late = ''] = youtube.publish({ channel: '@3-videos-no-51', count: 1, as: 'uncaptioned' });
    const archive = () => run('archive', '@3-videos-no-51', '--out', out);
    for (let again = 0; again < 2; again++) {
      const { code, output } = await archive();
      expect([code, output]).toEqual([2, expect.stringContaining(`next run: ${late} (transcript_unavailable).`)]);
      expect(videosRead()).toContain(late);
    }
    youtube.changeVideos({ videoIds: [late], as: 'video' });
    const { code, output } = await archive();
    expect([code, output]).toEqual([0, expect.stringMatching(/: 4 complete \(1 new\), 0 late, 0 failed in /)]);
    expect(new Set(videosRead())).toEqual(new Set([late]));
  });
});

describe('a file that is there', () => {
  it('is not fetched again without an index, under an old name, and in another folder', async () => {
    const out = newDirectory();
    await run('archive', '@tidewater', '--out', out, '--format', 'markdown');
    const [old = '', moved = ''] = filesOf(out);
    mkdirSync(join(out, 'read/later'), { recursive: true });
    renameSync(join(out, old), join(out, old.replace(/ (.{11})\.md$/, ' [$1].md')));
    renameSync(join(out, moved), join(out, 'read/later/My note tw-x ' + moved.slice(-'12345678901.md'.length)));
    rmSync(join(out, 'index.json'));
    videosRead();
    const { output } = await run('archive', '@tidewater', '--out', out, '--format', 'markdown');
    expect(output).toMatch(/: 5 complete \(0 new\), 0 late, 0 failed in /);
    expect(videosRead()).toEqual([]);
  });
});

describe('a directory', () => {
  it('that was removed begins anew, and one without its index goes on', async () => {
    const out = newDirectory();
    const follow = () => run('follow', '@3-videos-no-52', '--out', out, '--once', '--start', '2');
    await follow();
    rmSync(join(out, 'index.json'));
    const [later = ''] = youtube.publish({ channel: '@3-videos-no-52', count: 1 });
    videosRead();
    expect((await follow()).output).toMatch(/: 3 complete \(1 new\), /);
    expect(new Set(videosRead())).toEqual(new Set([later]));
    rmSync(out, { recursive: true });
    expect((await follow()).output).toMatch(/: 2 complete \(2 new\), /);
    const subscriptions = await database.dataSource.query<object[]>(
      `SELECT id FROM jobs WHERE request LIKE '%@3-videos-no-52%' AND check_seconds IS NOT NULL AND deleted_at IS NULL`,
    );
    expect(subscriptions).toHaveLength(1);
  });

  it('is used by one run at a time: another one is refused and changes nothing', async () => {
    const out = newDirectory();
    const hold = youtube.hold({ kind: 'timedtext' });
    const child = startCli(['archive', '@tidewater', '--out', out], variables());
    const closed = once(child, 'close');
    await hold.arrived;
    for (const command of [['archive'], ['follow', '--once']]) {
      const refused = await run(...command, '@tidewater', '--out', out);
      expect([refused.code, refused.output]).toEqual([1, '']);
      expect(refused.errorOutput).toBe(
        `error: Another run uses ${out} (process ${readFileSync(join(out, '.lock'), 'utf8')}). Wait until it has ended.\n`,
      );
    }
    hold.release();
    expect(await closed).toEqual([0, null]);
    expect([filesOf(out).length, existsSync(join(out, '.lock'))]).toEqual([5, false]);
  });
});

describe('several channels and playlists', () => {
  it('are followed in one process, each in its folder, also from a list; an unknown one does not end the others', async () => {
    const out = newDirectory();
    const begun = await run('follow', '@3-videos-no-53', '--out', out, '--once', '--start', '1');
    expect([begun.code, filesOf(out)]).toEqual([0, [expect.any(String)]]);
    const list = join(folder.path, 'list.opml');
    const feed = 'https://www.youtube.com/feeds/videos.xml?channel_id=';
    const id = JSON.parse(readFileSync(join(out, 'index.json'), 'utf8')).channel.id as string;
    writeFileSync(list, `<opml><outline xmlUrl="${feed}${id}"/></opml>`);
    const args = [
      '@tidewater',
      SATURDAY.id,
      '@no-such-channel',
      '--from',
      list,
      '--out',
      out,
      '--once',
      '--start',
      '2',
    ];
    const { code, output, errorOutput } = await run('follow', ...args, '--json');
    expect([code, errorOutput]).toEqual([1, expect.stringMatching(/^error: @no-such-channel: .*not found.*\n$/)]);
    const lines = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([
      { channel: { handle: '@tidewater' }, directory: join(out, '@tidewater'), complete: 2, written: 2 },
      { channel: null, playlist: { id: SATURDAY.id }, directory: join(out, SATURDAY.id), complete: 2, written: 1 },
      { channel: { id }, directory: out, complete: 1, written: 0 },
      { directory: out, lists: 4, complete: 5, written: 3, late: 0, failed: 0 },
    ]);
    expect(readdirSync(join(out, '@tidewater'))).toHaveLength(3);
    videosRead();
    const again = await run('follow', '@tidewater', '--out', out, '--once');
    expect([again.code, again.output]).toEqual([
      0,
      expect.stringMatching(/: 2 complete \(0 new\), .* in .*@tidewater\./),
    ]);
    expect(videosRead()).toEqual([]);
  });

  it('need a name, and a list without faults', async () => {
    const out = newDirectory();
    const list = join(folder.path, 'list.txt');
    writeFileSync(list, '@tidewater\nhttps://example.com/\n');
    for (const [args, line] of [
      [[], /^error: Nothing to follow\. Name a channel or a playlist, or a file with --from\.\n$/],
      [
        ['--from', list],
        /^error: .*list\.txt has no channel or playlist in line 2\. Use a handle, an ID or a URL\.\n$/,
      ],
    ] as const) {
      expect(await run('follow', ...args, '--out', out, '--once')).toMatchObject({
        ...{ code: 1, output: '', errorOutput: expect.stringMatching(line) },
      });
      expect(existsSync(out)).toBe(false);
    }
  });
});

describe('the option --front-matter', () => {
  it('writes YAML above Markdown, and is for that alone', async () => {
    const out = newDirectory();
    expect(await run('archive', '@tidewater', '--out', out, '--limit', '1', '--front-matter')).toMatchObject({
      code: 0,
    });
    const [file = ''] = filesOf(out);
    const [, yaml = '', text] = readFileSync(join(out, file), 'utf8').split(/^---\n/m);
    expect(parse(yaml)).toMatchObject({ channel: 'Tidewater Kitchen', language: 'en', tags: expect.any(Array) });
    expect(Object.keys(parse(yaml) as object)).toEqual(['title', 'channel', 'url', 'published', 'language', 'tags']);
    expect(text).toMatch(/^\n# /);
    expect(text).not.toContain('Tags:');
    const other = await run('archive', '@tidewater', '--out', out, '--format', 'markdown');
    expect(other.errorOutput).toMatch(/an archive with --format markdown --front-matter\./);
    const json = await run('archive', '@tidewater', '--out', newDirectory(), '--front-matter', '--format', 'json');
    expect(json.errorOutput).toBe('error: --front-matter is for --format markdown.\n');
  });
});
