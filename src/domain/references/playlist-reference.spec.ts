import { describe, expect, it } from '@jest/globals';
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
  `https://music.youtube.com/playlist?list=${PL}`,
  `https://www.youtube.com/playlist?app=desktop&list=${PL}`,
  `https://www.youtube.com/watch?v=hb0000000A1&list=${PL}&index=4`,
  `https://youtu.be/hb0000000A1?list=${PL}`,
  `https://www.youtube.com/embed/videoseries?list=${PL}`,
  `https%3A%2F%2Fwww.youtube.com%2Fplaylist%3Flist%3D${PL}`,
  `VL${PL}`,
  `https://www.youtube.com/browse/VL${PL}`,
  `https://www.youtube.com/playlist?list=VL${PL}`,
  `https://www.youtube.com/show/VL${PL}?season=1`,
  `https://music.youtube.com/browse/VL${PL}`,
];

const OTHERS: [string, 'mix' | 'personal'][] = [
  ['RD', 'mix'],
  ['RDhb0000000A1', 'mix'],
  ['ULhb0000000A1', 'mix'],
  ['https://www.youtube.com/watch?v=hb0000000A1&list=RDhb0000000A1&start_radio=1', 'mix'],
  ['WL', 'personal'],
  ['LL', 'personal'],
  ['HL', 'personal'],
  [`LL${CHANNEL}`, 'personal'],
  ['https://www.youtube.com/playlist?list=WL', 'personal'],
];

const REFUSED = [
  '',
  'PL',
  'VL',
  `VLVL${PL}`,
  `VLUC${CHANNEL}`,
  'https://www.youtube.com/show/SCh4rb0urL1ghtW0rksh0p00',
  `https://www.youtube.com/browse/VL${PL}/more`,
  'PLshort',
  `PL${'a'.repeat(65)}`,
  `pl${CHANNEL}`,
  `${PL}!`,
  `UUsh${CHANNEL}`,
  `FL${CHANNEL}00`,
  `UC${CHANNEL}`,
  'hb0000000A1',
  `list=${PL}`,
  'https://www.youtube.com/playlist?list=',
  `https://www.youtube.com/playlist?List=${PL}`,
  `https://www.youtube.com/${PL}`,
  'https://www.youtube.com/watch?v=hb0000000A1',
  `https://www.youtube.com/@name?list=${PL}`,
  'https://youtu.be/hb0000000A1',
  `https://example.com/playlist?list=${PL}`,
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
});
