import { describe, expect, it } from '@jest/globals';
import { legiblePath, rawUrlEncoder } from './request-paths.js';
import fc from 'fast-check';
import { superLinearGrowth } from '../../../test/cpu/linear-time.js';

const ENCODERS = [
  rawUrlEncoder('/channels/{id}/transcripts', 'channel'),
  rawUrlEncoder('/channels/{id}/uploads', 'channel'),
  rawUrlEncoder('/playlists/{id}/transcripts', 'page'),
  rawUrlEncoder('/videos/{id}/transcript', 'page'),
];
/** The encoded targets; that of at most one route. */
const encodeRawUrl = (target: string): (string | undefined)[] =>
  ENCODERS.map((encode) => encode(target)).filter((encoded) => encoded !== undefined);

describe('the URL of a page that is sent raw as an ID', () => {
  const encoded = (url: string): string => encodeURIComponent(url);
  it.each([
    [
      '/videos/https://www.youtube.com/watch?v=a/transcript',
      `/videos/${encoded('https://www.youtube.com/watch?v=a')}/transcript`,
    ],
    [
      '/videos/m.youtube.com/watch?v=a&t=5s/transcript?format=srt',
      `/videos/${encoded('m.youtube.com/watch?v=a&t=5s')}/transcript?format=srt`,
    ],
    [
      '/playlists/https:/youtube.com/playlist?list=PL%2D/transcripts?limit=2',
      `/playlists/${encoded('https:/youtube.com/playlist?list=PL%2D')}/transcripts?limit=2`,
    ],
    [
      '/videos/https:/www.youtube-nocookie.com/embed/aaaaaaaaaaa?rel=0/transcript',
      `/videos/${encoded('https:/www.youtube-nocookie.com/embed/aaaaaaaaaaa?rel=0')}/transcript`,
    ],
    [
      '/videos/https://youtu.be/aaaaaaaaaaa/transcript?languages=/transcript',
      '/videos/https:%2F%2Fyoutu.be%2Faaaaaaaaaaa/transcript?languages=/transcript',
    ],
    [
      '/channels/https://www.youtube.com/c/na%C3%AFve//transcripts?limit=1',
      '/channels/https:%2F%2Fwww.youtube.com%2Fc%2Fna%C3%AFve%2F/transcripts?limit=1',
    ],
    ['/channels/youtube.com/@a/videos/uploads', '/channels/youtube.com%2F@a%2Fvideos/uploads'],
  ])('%s is encoded, so that its slashes and its query belong to it', (target, expected) => {
    expect(encodeRawUrl(target)).toEqual([expected]);
  });

  it.each([
    '/videos/aaaaaaaaaaa/transcript?languages=en',
    '/channels/@a/transcripts?limit=/uploads',
    '/channels/@a//transcripts',
    '/channels/a/./b/transcripts',
    '/channels/a/%2E./transcripts',
    '/channels/a/b/',
    '/videos/https://example.com/watch?v=a/transcript',
    '/videos/https://example.com/youtu.be/a?v=a/transcript',
    '/videos/https://example.com/?u=youtube.com/watch?v=a/transcript',
    '/videos/https://www.youtube.com/watch?v=a/../admin/transcript',
    '/channels/https://www.youtube.com/watch?v=a/transcripts',
    '/usage?x=/videos/youtube.com/watch?v=a/transcript',
  ])('%s stays as it is', (target) => {
    expect(encodeRawUrl(target)).toEqual([]);
  });

  it.each(['/', '?', 'a', '/transcript', '/transcript?', 'youtu.be/', '?/'])(
    'is searched for in time linear in the length of a target that repeats %s',
    (part) => {
      const target = (size: number) => `/videos/https://youtu.be/${part.repeat(size / part.length)}`;
      const growth = superLinearGrowth((size) => {
        const text = target(size);
        return () => void encodeRawUrl(text);
      }, 64 * 1024);
      expect(growth).toBeUndefined();
    },
  );
});

const KEY = 'ctk_0123456789abcdefghij';
const encodeAll = (text: string): string =>
  [...text].map((character) => `%${character.charCodeAt(0).toString(16)}`).join('');

describe('the legible form of a path', () => {
  it.each([
    ['plain', KEY],
    ['encoded', KEY.replace('_', '%5F')],
    ['encoded nine times', KEY.replace('_', `%${'25'.repeat(8)}5F`)],
    ['encoded in every letter, three times', encodeAll(encodeAll(encodeAll(KEY)))],
    ['encoded beside what is malformed', `%zz%${KEY.replace('_', '%5F')}%c3%28%`],
    ['encoded beside bytes that are no UTF-8', `%ff%63%74%6b%5f${KEY.slice(4)}%c3`],
  ])('contains a key that is %s in plain characters, so that it can be redacted', (_how, key) => {
    expect(legiblePath(`/channels/${key}/transcripts`)).toContain(KEY);
  });

  it('is replaced by a note when the path is encoded too many times', () => {
    let path = 'a';
    for (let layer = 0; layer < 17; layer += 1)
      path = layer % 2 ? path.replace('%', '%25%') : encodeAll(path.slice(0, 40));
    expect(legiblePath(path).length).toBeLessThanOrEqual(path.length);
  });

  it('exists for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('%', '2', '5', 'f', 'a') }), (text) => {
        expect(legiblePath(text).length).toBeLessThanOrEqual(Math.max(text.length, 24));
      }),
    );
  });
});
