import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { unlistedVideo, type Upload, type VideoKind } from '../../domain/transcript.js';
import { isPublishedAfter, readSelection, type Selection } from './counted-list.js';

const upload = (index: number, kind: VideoKind | null): Upload => ({
  ...unlistedVideo(String(index).padStart(11, '0')),
  kind,
});

/** A list whose every tenth video is a Short, and every hundredth of an unknown kind. */
const ALL = Array.from({ length: 900 }, (_, index) =>
  upload(index, index % 100 === 99 ? null : index % 10 === 0 ? 'short' : 'video'),
);

async function select(selection: Selection, all: readonly Upload[] = ALL, order?: 'newest-first') {
  const counts: number[] = [];
  const { uploads, sinceFound } = await readSelection(
    selection,
    (count) => {
      counts.push(count);
      const read = all.slice(0, Math.max(100, count));
      return Promise.resolve({ uploads: read, complete: read.length === all.length });
    },
    order,
  );
  return { ids: uploads.map(({ videoId }) => Number(videoId)), counts, sinceFound };
}

describe('a selection of a list', () => {
  it('without kinds is its start', async () => {
    expect(await select({ limit: 3 })).toEqual({ ids: [0, 1, 2], counts: [3], sinceFound: undefined });
  });

  it('counts what remains of the kinds, and reads deeper only for more than the first read has', async () => {
    expect(await select({ limit: 2, kinds: ['short'] })).toMatchObject({ ids: [0, 10], counts: [2] });
    const deep = await select({ limit: 25, kinds: ['short'] });
    expect(deep.counts).toEqual([25, 500]);
    expect(deep.ids.slice(8, 12)).toEqual([80, 90, 99, 100]);
    expect(deep.ids).toHaveLength(25);
  });

  it('ends 500 videos deep, and keeps those of an unknown kind, which can be Shorts and no streams', async () => {
    const { ids } = await select({ limit: 100, kinds: ['short', 'live'] });
    expect([ids.length, ids.at(-1)]).toEqual([55, 499]);
    expect(await select({ limit: 100, kinds: ['live', 'upcoming'] })).toMatchObject({ ids: [], counts: [100, 500] });
  });

  it('of a list that is complete is read once', async () => {
    expect(await select({ limit: 5, kinds: ['live'] }, ALL.slice(0, 50))).toMatchObject({ ids: [], counts: [5] });
  });

  it('ends at the video of since, whatever its kind', async () => {
    const selection: Selection = { limit: 25, kinds: ['short'], since: '00000000021' };
    expect(await select(selection)).toEqual({ ids: [0, 10, 20], counts: [25], sinceFound: true });
    expect(await select({ ...selection, since: 'aaaaaaaaaaa' })).toMatchObject({ sinceFound: false });
    expect(await select({ limit: 3, since: '00000000003' })).toMatchObject({ ids: [0, 1, 2], sinceFound: false });
  });

  it('has what can have been published then or later, by the date, else by the age, and what states neither', () => {
    const nowMs = Date.parse('2026-11-20T00:00:00Z');
    const day = 86_400_000;
    const dated = fc.integer({ min: 0, max: 500 }).map((days) => new Date(nowMs - days * day).toISOString());
    const aged = fc.integer({ min: 1, max: 500 }).map((days) => `${days} days ago`);
    fc.assert(
      fc.property(fc.option(dated), fc.option(aged), fc.integer({ min: 0, max: 500 }), (publishedAt, text, days) => {
        const video = { ...upload(1, null), publishedAt, publishedText: text };
        const sinceMs = nowMs - days * day;
        const agedDays = Number(text?.split(' ')[0] ?? 0);
        const expected = publishedAt !== null ? Date.parse(publishedAt) >= sinceMs : agedDays <= days;
        const request = { publishedAfter: new Date(sinceMs).toISOString() };
        expect(isPublishedAfter(video, request, nowMs)).toBe(expected);
        expect(isPublishedAfter(video, {}, nowMs)).toBe(true);
      }),
    );
  });

  it('of what was published after a time goes deeper, in a list of uploads only until one is older', async () => {
    const list = ALL.map((one, index) => ({ ...one, publishedText: `${index} days ago` }));
    const publishedAfter = new Date(Date.now() - 150 * 86_400_000).toISOString();
    const playlist = await select({ limit: 100, publishedAfter }, list.toReversed());
    expect([playlist.ids.length, playlist.counts]).toEqual([0, [100, 500]]);
    const uploads = await select({ limit: 100, publishedAfter }, list, 'newest-first');
    expect([uploads.ids.length, uploads.counts]).toEqual([100, [100]]);
    const recent = new Date(Date.now() - 50 * 86_400_000).toISOString();
    expect(await select({ limit: 100, publishedAfter: recent }, list, 'newest-first')).toMatchObject({ counts: [100] });
    const deep = await select({ limit: 100, kinds: ['short'], publishedAfter }, list, 'newest-first');
    expect([deep.ids.length, deep.counts]).toEqual([17, [100, 500]]);
  });
});
