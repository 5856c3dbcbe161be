import { describe, expect, it } from '@jest/globals';
import { captionUrl } from './captions.js';

const BASE = 'https://www.youtube.com/api/timedtext?v=abcdefghijk&lang=en';

describe('captionUrl', () => {
  it('replaces or removes the format in the URL', () => {
    expect(captionUrl(`${BASE}&fmt=srv3`, 'json3', 'abcdefghijk')?.search).toBe('?v=abcdefghijk&lang=en&fmt=json3');
    expect(captionUrl(`${BASE}&fmt=srv3&fmt=vtt`, null, 'abcdefghijk')?.search).toBe('?v=abcdefghijk&lang=en');
    expect(captionUrl(BASE, 'json3', 'abcdefghijk')?.searchParams.getAll('fmt')).toEqual(['json3']);
  });

  it('removes the parameter that adds positions to the text', () => {
    expect(captionUrl(`${BASE}&xosf=1&fmt=srv3`, null, 'abcdefghijk')?.search).toBe('?v=abcdefghijk&lang=en');
  });

  it('is null for another video, host or path', () => {
    expect(captionUrl(BASE, null, 'zzzzzzzzzzz')).toBeNull();
    for (const url of [
      '',
      'timedtext',
      BASE.replace('www.youtube.com', 'example.org'),
      BASE.replace('https:', 'http:'),
    ]) {
      expect(captionUrl(url, null, 'abcdefghijk')).toBeNull();
    }
    expect(captionUrl('https://www.youtube.com/logout?v=abcdefghijk', null, 'abcdefghijk')).toBeNull();
  });
});
