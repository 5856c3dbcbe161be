import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Environment } from '../../src/config/environment.js';
import {
  type Adapter,
  context,
  end,
  listPlaylist,
  listUploads,
  openAdapter,
  pageOfUploads,
} from '../youtube/adapter.js';
import { type Replay, startReplay } from './replay.js';

const folder = process.env['RECORDINGS_DIR'];
if (!folder) throw new Error('Set RECORDINGS_DIR to the folder of the recordings.');

const AGE_GATED_CHANNEL = 'UCbfnHqxXs_K3kvaH-WlNlig';

/** First pages of playlists were recorded only under their continuation tokens. */
const ALIASES = {
  'https://www.youtube.com/@youtube': 'resolve-handle-gronkh',
  [`VLUU${AGE_GATED_CHANNEL.slice(2)}`]: 'uploads-playlist-page1',
  [`VLUULF${AGE_GATED_CHANNEL.slice(2)}`]: 'uploads-playlist-page1',
};

let replay: Replay;
let adapter: Adapter;

beforeAll(async () => {
  replay = await startReplay(folder, ALIASES);
});

afterEach(() => adapter.close());

afterAll(() => replay.close());

async function open(choices: Partial<Environment> = {}, playAs: string | null = null): Promise<Adapter['platform']> {
  replay.playAs(playAs);
  replay.missed.length = 0;
  adapter = await openAdapter(replay.url, choices);
  return adapter.platform;
}

describe('recorded videos through the whole adapter', () => {
  it.each([
    ['VISIONOS', 'M4gD1WSo5mA', 'ok'],
    ['VISIONOS', 'kX3nB4PpJko', 'ok'],
    ['VISIONOS', 'X4VbdwhkE10', 'video_live'],
    ['ANDROID_REEL', 'M4gD1WSo5mA', 'ok'],
    ['ANDROID_REEL', 'X4VbdwhkE10', 'video_live'],
    ['ANDROID_REEL', 'don-t-exist', 'video_unavailable'],
    ['ANDROID_REEL', 'ayI2iBwGdxw', 'video_members_only'],
    ['ANDROID_REEL', '8VajtrESJzA', 'video_private'],
  ] as const)('%s says that %s is %s', async (client, videoId, outcome) => {
    expect(end(await (await open({ YOUTUBE_CLIENTS: [client] })).readVideo(videoId, [], context()))).toBe(outcome);
  });

  it.each([
    ['player-android-ok', 'GJLlxj_dtq8', 'ok'],
    ['player-android-po-token-required', 'GJLlxj_dtq8', 'upstream_blocked'],
    ['player-android-transcripts-disabled', 'dsMFmonKDD4', 'transcript_unavailable'],
    ['player-android-age-restricted', 'Njp5uhTorCo', 'video_age_restricted'],
    ['player-android-request-blocked', 'GJLlxj_dtq8', 'upstream_blocked'],
    ['html-consent-page', 'GJLlxj_dtq8', 'upstream_blocked'],
    ['html-too-many-requests', 'GJLlxj_dtq8', 'upstream_blocked'],
  ])('%s has the expected outcome', async (name, videoId, outcome) => {
    const platform = await open({ YOUTUBE_CLIENTS: ['ANDROID_VR'] }, name);
    expect(end(await platform.readVideo(videoId, [], context()))).toBe(outcome);
  });

  it('a video made for kids, which VISIONOS refuses, plays on the reel', async () => {
    const videoId = 'it3OtbTxQk0';
    const alone = await (await open({ YOUTUBE_CLIENTS: ['VISIONOS'] })).readVideo(videoId, [], context());
    expect(alone).toMatchObject({ failure: { code: 'video_unavailable' }, confirmed: false });
    await adapter.close();
    const platform = await open({ YOUTUBE_CLIENTS: ['VISIONOS', 'ANDROID_REEL'] });
    expect(end(await platform.readVideo(videoId, [], context()))).toBe('ok');
  });
});

describe('recorded channels through the whole adapter', () => {
  it.each([
    ['handle', 'Gronkh', 'UCYJ61XIK64sp6ZFFS8sctxw'],
    ['custom', 'JeffGeerling', 'UCR-DXc1voovS8nhAvccRZhg'],
    ['user', 'creativecommons', 'UCTwECeGqMZee77BjdoYtI2Q'],
  ] as const)('the %s %s leads to its channel', async (kind, name, id) => {
    const reference = kind === 'handle' ? { kind, handle: name } : { kind, name };
    await expect((await open()).resolveChannel(reference, context())).resolves.toBe(id);
  });

  it('an unknown handle, a terminated channel and an impossible ID are not found', async () => {
    const platform = await open();
    const handle = 'nonExistingHandleThatWillNeverExist15464';
    const notFound = { code: 'channel_not_found' };
    await expect(platform.resolveChannel({ kind: 'handle', handle }, context())).rejects.toMatchObject(notFound);
    for (const id of ['UCoaO4U_p7G7AwalqSbGCZOA', 'UCPWXIOPK-9myzek6jHR5yrg', 'DOESNT-EXIST']) {
      await expect(platform.readChannel(id, context())).rejects.toMatchObject(notFound);
    }
  });

  it.each([
    ['UCTwECeGqMZee77BjdoYtI2Q', 'Creative Commons', '@creativecommons'],
    ['UCR-DXc1voovS8nhAvccRZhg', 'Jeff Geerling', '@JeffGeerling'],
    ['UCYJ61XIK64sp6ZFFS8sctxw', 'Gronkh', '@gronkh'],
    // The age gate shows a name only; each upload has the handle.
    [AGE_GATED_CHANNEL, 'Laphroaig Whisky', '@laphroaig'],
  ])('%s is %s', async (id, name, handle) => {
    await expect((await open()).readChannel(id, context())).resolves.toEqual({ id, name, handle });
  });

  it('uploads are listed over two pages, although the Shorts and the feed were not recorded', async () => {
    const { uploads, complete } = await listUploads(await open(), AGE_GATED_CHANNEL, 1_000);
    expect(complete).toBe(true);
    expect(uploads.length).toBeGreaterThan(100);
    expect(new Set(uploads.map(({ videoId }) => videoId)).size).toBe(uploads.length);
    expect(uploads.every(({ title, publishedAt }) => title !== null && publishedAt === null)).toBe(true);
    expect(replay.missed).toEqual(expect.arrayContaining([expect.stringContaining('/feeds/videos.xml')]));
  });

  it('all uploads are listed page by page, each once', async () => {
    const platform = await open();
    const first = await pageOfUploads(platform, AGE_GATED_CHANNEL);
    const second = await pageOfUploads(platform, AGE_GATED_CHANNEL, first.next ?? undefined);
    expect([first.uploads.length, second.uploads.length, second.next, second.incomplete]).toEqual([
      100,
      50,
      null,
      false,
    ]);
    const uploads = [...first.uploads, ...second.uploads];
    expect(new Set(uploads.map(({ videoId }) => videoId)).size).toBe(150);
    expect(uploads.every(({ title, durationSeconds }) => title !== null && durationSeconds !== null)).toBe(true);
  });
});

describe('recorded playlists through the whole adapter', () => {
  it('a list of the platform is read over two pages, with its title', async () => {
    const id = `UULF${AGE_GATED_CHANNEL.slice(2)}`;
    const { playlist, uploads, complete } = await listPlaylist(await open(), id, 1_000);
    expect([playlist, uploads.length, complete]).toEqual([{ id, title: 'Videos' }, 150, true]);
    expect(uploads.every(({ title }) => title !== null)).toBe(true);
    expect(replay.missed).toEqual([]);
  });

  it('a list without videos of its kind is not found', async () => {
    const reading = listPlaylist(await open(), `UUSH${AGE_GATED_CHANNEL.slice(2)}`, 25);
    await expect(reading).rejects.toMatchObject({ code: 'playlist_not_found' });
  });
});
