import { FOG_JA } from './harbour-light-scripts.js';
import { type Channel, channelOf, type Client, film, type Track, type Video } from './model.js';
import { seedOf } from './random.js';
import { coloured, italic, talk } from './speech.js';
import { generated, manual, webOnly } from './track.js';

/** A plain video of generated talk. */
function talkVideo(name: string, title: string, days: number, differences: Partial<Video> = {}): Video {
  const seed = seedOf(name);
  const facts = { days, seconds: 150 + (seed % 900), views: seed % 60_000, ...differences };
  return film(name, title, facts, [generated('en', () => talk(seed, 40))]);
}

const FOG_SIGNAL_EPISODES = 230;

/** More than two pages of uploads. */
export const FOG_SIGNAL: Channel = channelOf('fogsignalradio', {
  name: 'Fog Signal Radio',
  handle: '@fogsignalradio',
  description: 'A short programme from the pilot house, every other day.',
  uploads: () =>
    Array.from({ length: FOG_SIGNAL_EPISODES }, (_, index) => {
      const episode = FOG_SIGNAL_EPISODES - index;
      return talkVideo(
        `fs-${String(episode).padStart(3, '0')}`,
        `Fog Signal Radio, programme ${episode}`,
        1 + index * 2,
      );
    }),
});

/** What a client that doubts a refusal asks for: the platform's IDs of two old videos and of their channels. */
export const CONTROLS: readonly Channel[] = [
  {
    ...channelOf('oldtideclock', { name: 'The Old Tide Clock', handle: '@oldtideclock' }),
    id: 'UC4QobU6STFB0P71PMvOGN5A',
    uploads: () => [{ ...talkVideo('control-1', 'The tide clock strikes', 7_000), id: 'jNQXAC9IVRw' }],
  },
  {
    ...channelOf('quaysidedance', { name: 'Quayside Dance', handle: '@quaysidedance' }),
    id: 'UCBR8-60-B28hp2BmDPdntcQ',
    uploads: () => [{ ...talkVideo('control-2', 'A dance on the quay', 5_000), id: '9bZkp7q19f0' }],
  },
];

/** A channel without uploads. */
export const EMPTY_SLIP: Channel = channelOf('emptyslip', {
  name: 'The Empty Slip',
  handle: '@emptyslip',
});

/** As above, but the platform never created the list: "The playlist does not exist." */
export const DRY_DOCK: Channel = channelOf('drydock', {
  name: 'Dry Dock',
  handle: '@drydock',
  uploadsPlaylist: 'missing',
});

/** A channel of the platform itself, such as Gaming or News. */
export const FOG_BANK_HUB: Channel = channelOf('fogbankhub', {
  name: 'Fog Banks',
  handle: null,
  state: 'hub',
  uploadsPlaylist: 'missing',
});

export const TERMINATED: Channel = channelOf('sunkentrawler', {
  name: 'Sunken Trawler',
  handle: '@sunkentrawler',
  state: 'terminated',
  uploadsPlaylist: 'missing',
});

/** An age-gated channel: its page has no metadata, but its uploads can be listed. */
export const AGE_GATED: Channel = channelOf('nightwatchtavern', {
  name: 'Night Watch Tavern',
  handle: '@nightwatchtavern',
  state: 'age-gated',
  uploads: () => [
    talkVideo('nw-ghosts', 'Ghost stories of the night watch', 5),
    talkVideo('nw-rum', 'Rum, and how it is made', 20, { state: 'age-gated' }),
    talkVideo('nw-cards', 'Card games for a long crossing', 60),
  ],
});

export const UNICODE_HANDLE: Channel = channelOf('minatonotoudai', {
  name: '港の灯台',
  handle: '@港の灯台',
  customNames: ['PhareÉtoilé'],
  uploads: () => [
    talkVideo('mt-fog', '霧の朝', 3, { tracks: [manual('ja', FOG_JA)] }),
    talkVideo('mt-rain', '雨の夜', 9, { tracks: [generated('ja', () => FOG_JA)] }),
  ],
});

export const WITHOUT_HANDLE: Channel = channelOf('unnamedmooring', {
  name: 'Unnamed Mooring',
  handle: null,
  userNames: ['oldmooring'],
  uploads: () => [
    talkVideo('um-buoy', 'Painting the mooring buoy', 12),
    talkVideo('um-chain', 'Ninety feet of chain', 40),
  ],
});

function recipe(name: string, title: string, days: number, lines: readonly string[]): Video {
  return film(name, title, { days, seconds: lines.length * 4 + 20, views: 1_000 + days * 137 }, [manual('en', lines)]);
}

/** Five videos that all have a transcript, for tests without faults. */
export const TIDEWATER: Channel = channelOf('tidewater', {
  name: 'Tidewater Kitchen',
  handle: '@tidewater',
  customNames: ['TidewaterKitchen'],
  userNames: ['tidewatercooks'],
  description: 'Supper from what the boats bring in.',
  uploads: () => [
    recipe('tw-chowder', 'Mussel chowder for eight', 2, [
      'Eight people, one pot, three pounds of mussels.',
      'Throw out the ones that stay open when you knock.',
      'Leeks, butter, a potato each, and milk at the end.',
      'It is ready when the windows are steamed up.',
    ]),
    {
      ...recipe('tw-bread', 'Bread that keeps for a week at sea', 9, [
        'Rye, wheat, salt, and the starter from the shelf.',
        'It rises overnight while you sleep, or keep watch.',
        'Bake it dark. Pale bread is wet bread by Wednesday.',
      ]),
      description: 'Sea bread.\n\n0:00 Flour\n0:10 Rising\n(0:20) Baking\n\nMore at 1:00.',
      tags: ['bread', 'rye'],
    },
    recipe('tw-mackerel', 'Mackerel, four ways', 16, [
      'One fish each, four ways, and no washing up.',
      'Grilled, soused, smoked, and straight from the pan.',
      'The best one is whichever you caught.',
    ]),
    recipe('tw-pickles', 'Pickled samphire', 30, [
      'Pick it above the tide line and leave the roots.',
      'Boil for a minute, no more, and into the jar.',
      'Vinegar, bay, a chilli if you are brave.',
    ]),
    recipe('tw-tea', 'Tea on a gimballed stove', 45, [
      'The stove swings so that the kettle does not.',
      'Half a kettle, lid on, and wait for the lull.',
      'Milk first. We are not discussing it.',
    ]),
  ],
});

/** The clients that were recorded, or are reported, to refuse videos made for kids. */
const REFUSING_KIDS: readonly Client[] = ['VISIONOS', 'ANDROID_VR'];

const KNOTS: readonly string[] = [
  'Good morning, pilots. Today we learn our first knot.',
  'The rabbit comes out of the hole and round the tree.',
  'Pull, and it will never slip. That is the bowline.',
];

const SPOKEN: Track = generated('en', () => KNOTS);

function lesson(name: string, title: string, days: number, differences: Partial<Video> = {}): Video {
  return film(name, title, { days, seconds: 145, views: 4_000 + days, ...differences }, [SPOKEN]);
}

/** Videos that are playable, although single clients report otherwise. */
export const PILOT_SCHOOL: Channel = channelOf('pilotschool', {
  name: 'Little Pilot School',
  handle: '@pilotschool',
  description: 'Knots, lights and signals for children.',
  uploads: () => [
    lesson('ps-kids', 'My first knot (made for kids)', 3, { unplayableOn: REFUSING_KIDS }),
    lesson('ps-kids-err', 'The lighthouse song (made for kids)', 6, { errorOn: REFUSING_KIDS }),
    lesson('ps-noreel', 'What the red light says', 9, { errorOn: ['ANDROID_REEL'] }),
    lesson('ps-webless', 'What the green light says', 12, { errorOn: ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_VR'] }),
    lesson('ps-styled', 'Signals in colour', 15, {
      tracks: [
        webOnly(
          manual('en', [
            ['Red means ', coloured('left', '#FF0000'), '.'],
            [italic('Green'), ' means right.'],
          ]),
        ),
        SPOKEN,
      ],
    }),
    lesson('ps-webonly', 'Signals in colour, without a word', 18, {
      tracks: [webOnly(manual('en', [[coloured('Red', '#FF0000'), ' is left and green is right.']]))],
    }),
    lesson('ps-plain', 'How to coil a rope', 21),
    lesson('ps-gone', 'A lesson that was deleted', 24, { state: 'deleted', tracks: [] }),
  ],
});
