import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { channelById, channelByPath, CHANNELS, videoById } from './catalogue.js';
import { HARBOUR_LIGHT } from './harbour-light.js';
import { CLIENTS, textOf, type Video } from './model.js';

const EVERY_UPLOAD = CHANNELS.flatMap((channel) => channel.uploads());

describe('the catalogue', () => {
  it('has IDs of the platform’s form, each once', () => {
    const ids = EVERY_UPLOAD.map(({ id }) => id);
    expect(ids.filter((id) => !/^[A-Za-z0-9_-]{11}$/.test(id))).toEqual([]);
    expect(CHANNELS.filter(({ id }) => !/^UC[A-Za-z0-9_-]{22}$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('lists the uploads of every channel newest first', () => {
    for (const channel of CHANNELS) {
      const dates = channel.uploads().map(({ publishedAt }) => publishedAt.getTime());
      expect(dates).toEqual([...dates].sort((a, b) => b - a));
    }
  });

  it('shows 17 readable videos among the newest 25 of the main channel, and every state of the others', () => {
    const newest = HARBOUR_LIGHT.uploads().slice(0, 25);
    const readable = newest.filter(
      ({ state, tracks }) =>
        state === 'ok' && tracks.some(({ tokenNeed }) => tokenNeed?.clients.length !== CLIENTS.length),
    );
    expect(readable).toHaveLength(17);
    expect(new Set(newest.map(({ state }) => state))).toEqual(
      new Set(['ok', 'live', 'upcoming', 'members-only', 'private', 'deleted', 'age-gated']),
    );
  });

  it('has a video of 10,000 captions', () => {
    const lengths = HARBOUR_LIGHT.uploads().flatMap(({ tracks }) => tracks.map((track) => track.cues().length));
    expect(Math.max(...lengths)).toBe(10_000);
  });

  it.each([
    ['/@harbourlight', 'Harbour Light Workshop'],
    ['/@HarbourLight/videos', 'Harbour Light Workshop'],
    ['/c/HarbourLightWorkshop', 'Harbour Light Workshop'],
    ['/user/harbourlightboats', 'Harbour Light Workshop'],
    ['/HarbourLightWorkshop', 'Harbour Light Workshop'],
    ['/channel/UCharbourlight__________', 'Harbour Light Workshop'],
    ['/@港の灯台', '港の灯台'],
    ['/c/PhareÉtoilé'.normalize('NFD'), '港の灯台'],
    ['/user/oldmooring', 'Unnamed Mooring'],
  ])('%s resolves to %s', (path, name) => {
    expect(channelByPath(path)?.name).toBe(name);
  });

  it.each([
    '/@nobody',
    '/c/harbourlight',
    '/user/HarbourLightWorkshop',
    '/',
    '/@bench-0x5',
    '/@bench-5x0',
    '/@bench-99999x1',
    '/@archive-20001x1',
    '/@archive-0x1',
  ])('%s resolves to no channel', (path) => {
    expect(channelByPath(path)).toBeUndefined();
  });
});

describe('a generated channel', () => {
  const size = { videos: fc.integer({ min: 1, max: 9_999 }), cues: fc.integer({ min: 1, max: 99_999 }) };

  it('is found by its ID, and its videos by theirs', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('bench', 'noise', 'mixed', 'archive'),
        fc.record(size),
        fc.nat(),
        (name, { videos, cues }, any) => {
          const channel = channelByPath(`/@${name}-${videos}x${cues}`);
          expect(channel?.id).toMatch(/^UC[A-Za-z0-9_-]{22}$/);
          expect(channelById(channel?.id ?? '')?.handle).toBe(`@${name}-${videos}x${cues}`);
          const video = channel?.uploads()[any % videos];
          expect(videoById(video?.id ?? '')?.video).toMatchObject({ id: video?.id, title: video?.title });
        },
      ),
      { numRuns: 20 },
    );
  });

  it('is found by its whole ID only', () => {
    expect(channelById('UCbench-0100x01500------')?.handle).toBe('@bench-100x1500');
    for (const id of ['UCbench-0100x01500---', 'UCbench-0100x01500-------', 'UCarchive-20001x00001---'])
      expect(channelById(id)).toBeUndefined();
  });

  it('can be an archive of 20,000 uploads over years, newest first, most of which have a text', () => {
    const channel = channelByPath('/@Archive-20000x40');
    const uploads = channel?.uploads() ?? [];
    expect(channelById(channel?.id ?? '')?.uploads()).toHaveLength(20_000);
    expect(new Set(uploads.map(({ id }) => id)).size).toBe(20_000);
    const dates = uploads.map(({ publishedAt }) => publishedAt.getTime());
    expect(dates.every((date, index) => index === 0 || date < (dates[index - 1] ?? 0))).toBe(true);
    const count = (isCounted: (video: Video) => boolean | undefined) => uploads.filter(isCounted).length;
    expect([
      count(({ state, tracks }) => state === 'ok' && tracks.length === 1),
      count(({ state, tracks }) => state === 'ok' && tracks.length === 0),
      ...(['private', 'deleted', 'members-only'] as const).map((state) => count((video) => video.state === state)),
      ...[count(({ short }) => short), count(({ pastLive }) => pastLive)],
    ]).toEqual([18_400, 400, 400, 400, 400, 4_000, 400]);
  });

  it('has the same text in every run', () => {
    const words = (): string[] | undefined =>
      channelByPath('/@bench-3x40')?.uploads()[1]?.tracks[0]?.cues().map(textOf);
    expect(words()).toHaveLength(40);
    expect(words()).toEqual(words());
  });
});
