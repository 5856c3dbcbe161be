import { FOG_JA } from './harbour-light-languages.js';
import { type Channel, channelId, hoursBefore, type Video, videoId } from './model.js';
import { seedOf } from './random.js';
import { talk } from './speech.js';
import { generated, manual } from './track.js';

const DAY = 24;

const PLAIN: Omit<Channel, 'id' | 'name' | 'handle'> = {
  customNames: [],
  userNames: [],
  description: '',
  state: 'ok',
  uploadsPlaylist: 'present',
  uploads: () => [],
};

/** A plain video of generated talk. */
function talkVideo(name: string, title: string, ageDays: number): Video {
  const id = videoId(name);
  return {
    id,
    title,
    state: 'ok',
    durationSeconds: 150 + (seedOf(id) % 900),
    viewCount: seedOf(id) % 60_000,
    publishedAt: hoursBefore(ageDays * DAY),
    tracks: [generated('en', () => talk(seedOf(id), 40))],
  };
}

const FOG_SIGNAL_EPISODES = 230;

/** More than two pages of uploads. */
export const FOG_SIGNAL: Channel = {
  ...PLAIN,
  id: channelId('fogsignalradio'),
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
};

/** A channel without uploads. */
export const EMPTY_SLIP: Channel = {
  ...PLAIN,
  id: channelId('emptyslip'),
  name: 'The Empty Slip',
  handle: '@emptyslip',
};

/** As above, but the platform never created the list: "The playlist does not exist." */
export const DRY_DOCK: Channel = {
  ...PLAIN,
  id: channelId('drydock'),
  name: 'Dry Dock',
  handle: '@drydock',
  uploadsPlaylist: 'missing',
};

export const TERMINATED: Channel = {
  ...PLAIN,
  id: channelId('sunkentrawler'),
  name: 'Sunken Trawler',
  handle: '@sunkentrawler',
  state: 'terminated',
  uploadsPlaylist: 'missing',
};

/** An age-gated channel: its page has no metadata, but its uploads can be listed. */
export const AGE_GATED: Channel = {
  ...PLAIN,
  id: channelId('nightwatchtavern'),
  name: 'Night Watch Tavern',
  handle: '@nightwatchtavern',
  state: 'age-gated',
  uploads: () => [
    talkVideo('nw-ghosts', 'Ghost stories of the night watch', 5),
    { ...talkVideo('nw-rum', 'Rum, and how it is made', 20), state: 'age-gated' },
    talkVideo('nw-cards', 'Card games for a long crossing', 60),
  ],
};

export const UNICODE_HANDLE: Channel = {
  ...PLAIN,
  id: channelId('minatonotoudai'),
  name: '港の灯台',
  handle: '@港の灯台',
  customNames: ['PhareÉtoilé'],
  uploads: () => [
    { ...talkVideo('mt-fog', '霧の朝', 3), tracks: [manual('ja', FOG_JA)] },
    { ...talkVideo('mt-rain', '雨の夜', 9), tracks: [generated('ja', () => FOG_JA)] },
  ],
};

export const WITHOUT_HANDLE: Channel = {
  ...PLAIN,
  id: channelId('unnamedmooring'),
  name: 'Unnamed Mooring',
  handle: null,
  userNames: ['oldmooring'],
  uploads: () => [
    talkVideo('um-buoy', 'Painting the mooring buoy', 12),
    talkVideo('um-chain', 'Ninety feet of chain', 40),
  ],
};
