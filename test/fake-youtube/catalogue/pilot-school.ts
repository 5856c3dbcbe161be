import { type Channel, channelId, type Client, hoursBefore, type Video, videoId } from './model.js';
import { coloured, italic } from './speech.js';
import { generated, manual, webOnly } from './track.js';

const DAY = 24;
/** The clients that were recorded, or are reported, to refuse videos made for kids. */
const REFUSING_KIDS: readonly Client[] = ['VISIONOS', 'ANDROID_VR'];

const KNOTS: readonly string[] = [
  'Good morning, pilots. Today we learn our first knot.',
  'The rabbit comes out of the hole and round the tree.',
  'Pull, and it will never slip. That is the bowline.',
];

function lesson(name: string, title: string, ageDays: number, differences: Partial<Video> = {}): Video {
  return {
    id: videoId(name),
    title,
    state: 'ok',
    durationSeconds: 145,
    viewCount: 4_000 + ageDays,
    publishedAt: hoursBefore(ageDays * DAY),
    tracks: [generated('en', () => KNOTS)],
    ...differences,
  };
}

/** Videos that are playable, although single clients report otherwise. */
export const PILOT_SCHOOL: Channel = {
  id: channelId('pilotschool'),
  name: 'Little Pilot School',
  handle: '@pilotschool',
  customNames: [],
  userNames: [],
  description: 'Knots, lights and signals for children.',
  state: 'ok',
  uploadsPlaylist: 'present',
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
        generated('en', () => KNOTS),
      ],
    }),
    lesson('ps-webonly', 'Signals in colour, without a word', 18, {
      tracks: [webOnly(manual('en', [[coloured('Red', '#FF0000'), ' is left and green is right.']]))],
    }),
    lesson('ps-plain', 'How to coil a rope', 21),
    lesson('ps-gone', 'A lesson that was deleted', 24, { state: 'deleted', tracks: [] }),
  ],
};
