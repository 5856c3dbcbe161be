import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';
import { encodeRawUrl, rejectUnknownPaths, legiblePath } from './request-paths.js';
import { type RequestContext, setRequestContext } from './request-context.js';
import { Routes } from './routes.js';
import { MethodNotAllowedError, RouteNotFoundError } from './routing-errors.js';
import fc from 'fast-check';
import { superLinearGrowth } from '../../test/linear-time.js';

const routes = new Routes();
routes.add('/channels/{id}/transcripts', ['GET']);
routes.add('/things', ['POST', 'GET']);
routes.add('/things/{id}', ['DELETE']);
routes.add('/things/{id}/parts', ['POST']);

/** The methods that a 405 allows, 'unknown' for a 404, or 'passed'. */
function outcome(method: string, path: string): string {
  let result = 'passed';
  const request = { method, path } as Request;
  setRequestContext(request, { route: routes.find(path) } as RequestContext);
  rejectUnknownPaths(request, {} as Response, (error: unknown) => {
    if (error instanceof MethodNotAllowedError) result = error.allowed;
    if (error instanceof RouteNotFoundError) result = 'unknown';
  });
  return result;
}

describe('the methods of a path', () => {
  it.each([
    ['GET', '/channels/@a/transcripts', 'passed'],
    ['HEAD', '/channels/@a/transcripts', 'GET'],
    ['POST', '/channels/https:%2F%2Fwww.youtube.com%2F@a/transcripts', 'GET'],
    ['OPTIONS', '/channels/@a/transcripts', 'GET'],
    ['GET', '/channels/@a/transcripts/', 'unknown'],
    ['TRACE', '/CHANNELS/@a/transcripts', 'unknown'],
    ['GET', '/channels/a/./b/transcripts', 'unknown'],
    ['DELETE', '/things/..', 'unknown'],
    ['HEAD', '/things', 'passed'],
    ['DELETE', '/things', 'GET, POST, HEAD'],
    ['GET', '/things/1', 'DELETE'],
    ['DELETE', '/things/1/parts', 'POST'],
    ['POST', '/elsewhere', 'unknown'],
    ['POST', '/things.', 'unknown'],
  ])('%s %s: %s', (method, path, expected) => {
    expect(outcome(method, path)).toBe(expected);
  });
});

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
      '/videos/https://youtu.be/aaaaaaaaaaa?si=b/transcript?format=srt',
      `/videos/${encoded('https://youtu.be/aaaaaaaaaaa?si=b')}/transcript?format=srt`,
    ],
    [
      '/videos/youtube.com/shorts/aaaaaaaaaaa?feature=share/transcript',
      `/videos/${encoded('youtube.com/shorts/aaaaaaaaaaa?feature=share')}/transcript`,
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
    expect(encodeRawUrl(target)).toBe(expected);
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
    expect(encodeRawUrl(target)).toBe(target);
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
    ['encoded twice', KEY.replace('_', '%255f')],
    ['encoded nine times', KEY.replace('_', `%${'25'.repeat(8)}5F`)],
    ['encoded in every letter', encodeAll(KEY)],
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

  it('is the decoded path when it was encoded once', () => {
    expect(legiblePath('/channels/%40%E6%B8%AF/transcripts')).toBe('/channels/@港/transcripts');
  });

  it('exists for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('%', '2', '5', 'f', 'a') }), (text) => {
        expect(legiblePath(text).length).toBeLessThanOrEqual(Math.max(text.length, 24));
      }),
    );
  });

  it.each(['%25', '%', '25', '%2', '%2525', '%ff'])(
    'takes time linear in the length of a path that repeats %s',
    (part) => {
      const growth = superLinearGrowth((size) => {
        const path = part.repeat(size / part.length);
        return () => void legiblePath(path);
      }, 64 * 1024);
      expect(growth).toBeUndefined();
    },
  );
});
