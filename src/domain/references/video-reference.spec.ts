import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText, anyUrl } from '../../../test/texts/any-text.js';
import { parseVideoReference } from './video-reference.js';

const ID = 'hb-000_00A1';

const ACCEPTED = [
  ID,
  `https://www.youtube.com/watch?v=${ID}`,
  `HTTPS://M.YouTube.com/watch?v=${ID}`,
  `https://music.youtube.com/watch?v=${ID}&si=abc`,
  `youtube.com/watch/?v=${ID}`,
  `https:/www.youtube.com/watch?v=${ID}`,
  `https://www.youtube.com/watch?app=desktop&v=${ID}&t=42s&list=PLabcdefghijklmnop&index=3#top`,
  `https://www.youtube.com/watch?v=${ID}&list=RD${ID}&start_radio=1`,
  `https://www.youtube.com/watch?v=${ID}&v=other`,
  `https://www.youtube.com/watch?v=hb%2D000%5F00A1`,
  `https://youtu.be/${ID}`,
  `https://youtu.be/${ID}?si=x/y#z`,
  `https://www.youtube.com/shorts/${ID}`,
  `https://www.youtube.com/live/${ID}?si=abc`,
  `https://www.youtube.com/embed/${ID}?autoplay=1`,
  `https://www.youtube-nocookie.com/embed/${ID}`,
  `https://www.youtube.com/v/${ID}`,
  `https%3A%2F%2Fwww.youtube.com%2Fwatch%3Fv%3D${ID}%26t%3D5`,
  `youtube.com%2Fshorts%2F${ID}`,
  `https:/www.youtube.com/watch%3Fv=${ID}&t=5`,
];

const REFUSED = [
  '',
  'hb-000_00A',
  'hb-000_00A!',
  ` ${ID}`,
  `${ID}\n`,
  `v=${ID}`,
  `@${ID}`,
  'https://www.youtube.com/',
  'https://www.youtube.com/watch?v=',
  `https://www.youtube.com/watch?v=${ID}x`,
  `https://www.youtube.com/watch?v=other&v=${ID}`,
  `https://www.youtube.com/watch#?v=${ID}`,
  `https://www.youtube.com/watch/extra?v=${ID}`,
  `https://www.youtube.com/${ID}`,
  `https://www.youtube.com//shorts/${ID}`,
  `https://www.youtube.com/shorts/${ID}/extra`,
  `https://www.youtube.com/clip/${ID}`,
  'https://www.youtube.com/embed/videoseries?list=PLabcdefghijklmnop',
  'https://www.youtube.com/embed/live_stream?channel=UCh4rb0urL1ghtW0rksh0p00',
  'https://www.youtube.com/@name',
  'https://www.youtube.com/shorts/%zz',
  `https://youtu.be/watch?v=${ID}`,
  `https://youtu.be/${ID}/extra`,
  `https://www.youtube.com:8443/watch?v=${ID}`,
  `https://user@www.youtube.com/watch?v=${ID}`,
  `https://www.youtube.com@example.com/watch?v=${ID}`,
  `https://www.youtube.com.example.com/watch?v=${ID}`,
  `https://notyoutube.com/watch?v=${ID}`,
  `https://notyoutu.be/${ID}`,
  `https://example.com/watch?v=${ID}`,
  `https://example.com/?u=https://youtu.be/${ID}`,
  `http://127.0.0.1:5432/watch?v=${ID}`,
  `file:///watch?v=${ID}`,
  `//youtu.be/${ID}`,
];

describe('a video reference', () => {
  it.each(ACCEPTED)('%j is parsed', (text) => {
    expect(parseVideoReference(text)).toBe(ID);
  });

  it.each(REFUSED)('%j is refused', (text) => {
    expect(parseVideoReference(text)).toBeUndefined();
  });

  it('never throws and always matches the grammar, for any text', () => {
    const url = fc.tuple(
      fc.constantFrom('', 'https://', 'https%3A%2F%2F'),
      fc.constantFrom('youtu.be/', 'www.youtube.com/watch?v=', 'm.youtube.com/shorts/', 'youtube.com%2Flive%2F'),
      fc.oneof(anyText(), fc.string({ unit: fc.constantFrom(...'%2Fazé/&?#-_'), maxLength: 20 })),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          anyText(),
          anyUrl(),
          url.map((parts) => parts.join('')),
        ),
        (text) => {
          expect(parseVideoReference(text) ?? ID).toMatch(/^[A-Za-z0-9_-]{11}$/);
        },
      ),
    );
  });

  it('is the same as an ID, as any form of URL and as an encoded URL', () => {
    const id = fc
      .string({ unit: fc.constantFrom(...'abzAZ09_-'), minLength: 11, maxLength: 11 })
      .filter((text) => text !== 'videoseries' && text !== 'live_stream');
    const form = fc.constantFrom<(id: string) => string>(
      (each) => each,
      (each) => `https://www.youtube.com/watch?v=${each}`,
      (each) => `m.youtube.com/watch?feature=x&v=${each}&t=3`,
      (each) => `https://youtu.be/${each}`,
      ...['shorts', 'live', 'embed'].map((page) => (each: string) => `http://youtube.com/${page}/${each}?a=b`),
    );
    fc.assert(
      fc.property(id, form, (videoId, write) => {
        expect(parseVideoReference(write(videoId))).toBe(videoId);
        expect(parseVideoReference(encodeURIComponent(write(videoId)))).toBe(videoId);
      }),
    );
  });
});
