import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText, anyUrl } from '../../test/any-text.js';
import { REFERENCE_LENGTH_MAX } from './channel-reference.js';
import { parsePlaylistReference } from './playlist-reference.js';

const PL = 'PLh4rb0urL1ghtW0rksh0p-playlist_01';
const CHANNEL = 'h4rb0urL1ghtW0rksh0p00';

const PLAYLISTS = [
  PL,
  'PL0123456789ABCDEF',
  'EC0123456789ABCDEF',
  `UU${CHANNEL}`,
  ...['SH', 'LF', 'LV', 'LP', 'PS', 'PV', 'MO', 'MF', 'MS', 'MV'].map((content) => `UU${content}${CHANNEL}`),
  `FL${CHANNEL}`,
  `PU${CHANNEL}`,
  'OLAK5uy_kmPRjHDECIcuVwnKsx2Ng7fyNgFKWNJFs',
  'RDCLAK5uy_kmPRjHDECIcuVwnKsx2Ng7fyNgFKWNJFs',
];

const URLS = [
  `https://www.youtube.com/playlist?list=${PL}`,
  `http://m.youtube.com/playlist/?list=${PL}&si=abc#top`,
  `youtube.com/playlist?list=${PL}`,
  `https:/www.youtube.com/playlist?list=${PL}`,
  `https://music.youtube.com/playlist?list=${PL}`,
  `https://www.youtube.com/playlist?app=desktop&list=${PL}`,
  `https://www.youtube.com/watch?v=hb0000000A1&list=${PL}&index=4`,
  `https://youtu.be/hb0000000A1?list=${PL}`,
  `https://www.youtube.com/embed/videoseries?list=${PL}`,
  `https%3A%2F%2Fwww.youtube.com%2Fplaylist%3Flist%3D${PL}`,
];

const OTHERS: [string, 'mix' | 'personal'][] = [
  ['RD', 'mix'],
  ['RDMM', 'mix'],
  ['RDhb0000000A1', 'mix'],
  ['RDEMabcdefghijklmnopqrstuv', 'mix'],
  ['RDAMVMhb0000000A1', 'mix'],
  ['ULhb0000000A1', 'mix'],
  ['https://www.youtube.com/watch?v=hb0000000A1&list=RDhb0000000A1&start_radio=1', 'mix'],
  ['WL', 'personal'],
  ['LL', 'personal'],
  ['LM', 'personal'],
  ['HL', 'personal'],
  [`LL${CHANNEL}`, 'personal'],
  ['https://www.youtube.com/playlist?list=WL', 'personal'],
];

const REFUSED = [
  '',
  'PL',
  'PLshort',
  `PL${'a'.repeat(65)}`,
  `pl${CHANNEL}`,
  `${PL}!`,
  `${PL}\n`,
  ` ${PL}`,
  `VL${PL}`,
  `UU${CHANNEL}0`,
  `UUsh${CHANNEL}`,
  `FL${CHANNEL}00`,
  `UC${CHANNEL}`,
  'OLAK5uy_',
  'hb0000000A1',
  '@harbourlight',
  `list=${PL}`,
  'https://www.youtube.com/playlist',
  'https://www.youtube.com/playlist?list=',
  `https://www.youtube.com/playlist?List=${PL}`,
  `https://www.youtube.com/playlist#?list=${PL}`,
  `https://www.youtube.com/${PL}`,
  'https://www.youtube.com/watch?v=hb0000000A1',
  `https://www.youtube.com/@name?list=${PL}`,
  'https://www.youtube.com/@name/playlists',
  'https://youtu.be/hb0000000A1',
  'https://www.youtube.com/playlist?list=%zz',
  `https://www.youtube.com/%zz?list=${PL}`,
  `https://www.youtube.com:8443/playlist?list=${PL}`,
  `https://user@www.youtube.com/playlist?list=${PL}`,
  `https://www.youtube.com@example.com/playlist?list=${PL}`,
  `https://www.youtube.com.example.com/playlist?list=${PL}`,
  `https://notyoutube.com/playlist?list=${PL}`,
  `https://example.com/playlist?list=${PL}`,
  `http://127.0.0.1/playlist?list=${PL}`,
  `//www.youtube.com/playlist?list=${PL}`,
];

describe('a playlist reference', () => {
  it.each(PLAYLISTS)('the ID %j is parsed', (id) => {
    expect(parsePlaylistReference(id)).toEqual({ kind: 'playlist', id });
    expect(parsePlaylistReference(`https://www.youtube.com/playlist?list=${id}`)).toEqual({ kind: 'playlist', id });
  });

  it.each(URLS)('the URL %j is parsed', (text) => {
    expect(parsePlaylistReference(text)).toEqual({ kind: 'playlist', id: PL });
  });

  it.each(OTHERS)('%j is a %s and no playlist', (text, kind) => {
    expect(parsePlaylistReference(text)).toMatchObject({ kind });
  });

  it.each(REFUSED)('%j is refused', (text) => {
    expect(parsePlaylistReference(text)).toBeUndefined();
  });

  it('longer than 2,048 characters is refused', () => {
    const url = `https://www.youtube.com/playlist?list=${PL}&x=${'a'.repeat(REFERENCE_LENGTH_MAX)}`;
    expect(parsePlaylistReference(url)).toBeUndefined();
    expect(parsePlaylistReference(url.slice(0, REFERENCE_LENGTH_MAX))).toEqual({ kind: 'playlist', id: PL });
  });

  it('never throws and always matches the grammar, for any text', () => {
    const list = fc.tuple(
      fc.constantFrom('', 'youtube.com/playlist?list=', 'https%3A%2F%2Fwww.youtube.com%2Fwatch%3Fv%3Dx%26list%3D'),
      fc.constantFrom('PL', 'UU', 'UUSH', 'RD', 'LL', ''),
      fc.oneof(anyText(), fc.string({ unit: fc.constantFrom(...'%2Fazé/&?#-_'), maxLength: 40 })),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          anyText(),
          anyUrl(),
          list.map((parts) => parts.join('')),
        ),
        (text) => {
          expect(parsePlaylistReference(text)?.id ?? PL).toMatch(/^[A-Z]{2}[A-Za-z0-9_-]{0,74}$/);
        },
      ),
    );
  });

  it('is the same as an ID, as any form of URL and as an encoded URL', () => {
    const id = fc
      .string({ unit: fc.constantFrom(...'abzAZ09_-'), minLength: 32, maxLength: 32 })
      .map((random) => `PL${random}`);
    const form = fc.constantFrom<(id: string) => string>(
      (each) => each,
      (each) => `https://www.youtube.com/playlist?list=${each}`,
      (each) => `m.youtube.com/watch?v=hb0000000A1&list=${each}&t=3`,
      (each) => `https://youtu.be/hb0000000A1?list=${each}`,
    );
    fc.assert(
      fc.property(id, form, (playlistId, write) => {
        const expected = { kind: 'playlist', id: playlistId };
        expect(parsePlaylistReference(write(playlistId))).toEqual(expected);
        expect(parsePlaylistReference(encodeURIComponent(write(playlistId)))).toEqual(expected);
      }),
    );
  });
});
