import { type Channel, channelId, hoursBefore, type Video, videoId } from './model.js';
import { manual } from './track.js';

const DAY = 24;

function recipe(name: string, title: string, ageDays: number, lines: readonly string[]): Video {
  return {
    id: videoId(name),
    title,
    state: 'ok',
    durationSeconds: lines.length * 4 + 20,
    viewCount: 1_000 + ageDays * 137,
    publishedAt: hoursBefore(ageDays * DAY),
    tracks: [manual('en', lines)],
  };
}

/** Five videos that all have a transcript, for tests without faults. */
export const TIDEWATER: Channel = {
  id: channelId('tidewater'),
  name: 'Tidewater Kitchen',
  handle: '@tidewater',
  customNames: ['TidewaterKitchen'],
  userNames: ['tidewatercooks'],
  description: 'Supper from what the boats bring in.',
  state: 'ok',
  uploadsPlaylist: 'present',
  uploads: () => [
    recipe('tw-chowder', 'Mussel chowder for eight', 2, [
      'Eight people, one pot, three pounds of mussels.',
      'Throw out the ones that stay open when you knock.',
      'Leeks, butter, a potato each, and milk at the end.',
      'It is ready when the windows are steamed up.',
    ]),
    recipe('tw-bread', 'Bread that keeps for a week at sea', 9, [
      'Rye, wheat, salt, and the starter from the shelf.',
      'It rises overnight while you sleep, or keep watch.',
      'Bake it dark. Pale bread is wet bread by Wednesday.',
    ]),
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
};
