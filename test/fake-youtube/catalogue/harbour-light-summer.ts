import * as languages from './harbour-light-languages.js';
import * as scripts from './harbour-light-scripts.js';
import { hoursBefore, type Video, videoId } from './model.js';
import { talk } from './speech.js';
import { generated, manual, needingToken, timed } from './track.js';

const DAY = 24;

/** How many captions the longest video has. */
const LONGEST_CUES = 10_000;

/** The 14th to the 25th of the newest uploads. */
export const HARBOUR_LIGHT_SUMMER: readonly Video[] = [
  {
    id: videoId('hl-stream'),
    title: 'Twelve hours in the boatyard (the whole stream)',
    state: 'ok',
    pastLive: true,
    durationSeconds: 43_200,
    viewCount: 9_310,
    publishedAt: hoursBefore(27 * DAY),
    tracks: [generated('en', () => talk(1962, LONGEST_CUES))],
  },
  {
    id: videoId('hl-private'),
    title: 'Owen’s birthday',
    state: 'private',
    durationSeconds: 95,
    viewCount: 4,
    publishedAt: hoursBefore(30 * DAY),
    tracks: [],
  },
  {
    id: videoId('hl-glue'),
    title: 'Which glue survives the sea? #shorts',
    state: 'ok',
    short: true,
    durationSeconds: 48,
    viewCount: 1_050_999,
    publishedAt: hoursBefore(35 * DAY),
    tracks: [manual('en', scripts.GLUE)],
  },
  {
    id: videoId('hl-planks'),
    title: 'Caulking: how a wooden boat stays dry',
    state: 'ok',
    durationSeconds: 559,
    viewCount: 64_120,
    publishedAt: hoursBefore(40 * DAY),
    tracks: [needingToken(manual('en', scripts.PLANKS), ['WEB', 'VISIONOS'])],
  },
  {
    id: videoId('hl-token'),
    title: 'The dinghy’s first sail, cut from an old one',
    state: 'ok',
    durationSeconds: 822,
    viewCount: 31_006,
    publishedAt: hoursBefore(45 * DAY),
    tracks: [needingToken(manual('en', scripts.OARS))],
  },
  {
    id: videoId('hl-wreck'),
    title: 'The wreck below the point (contains the wreck)',
    state: 'age-gated',
    durationSeconds: 1_210,
    viewCount: 150_733,
    publishedAt: hoursBefore(52 * DAY),
    tracks: [manual('en', scripts.PREMIERE)],
  },
  {
    id: videoId('hl-walk'),
    title: 'Where we are: a walk round the harbour',
    state: 'ok',
    durationSeconds: 476,
    viewCount: 18_450,
    publishedAt: hoursBefore(60 * DAY),
    tracks: [manual('en-GB', scripts.HARBOUR_WALK)],
  },
  {
    id: videoId('hl-deleted'),
    title: 'Test upload, please ignore',
    state: 'deleted',
    durationSeconds: 12,
    viewCount: 1,
    publishedAt: hoursBefore(68 * DAY),
    tracks: [],
  },
  {
    id: videoId('hl-werft'),
    title: 'Zu Besuch in der Werft: ein Tag an der Förde',
    state: 'ok',
    durationSeconds: 1_033,
    viewCount: 40_288,
    publishedAt: hoursBefore(75 * DAY),
    tracks: [generated('de', () => languages.VISIT_DE)],
  },
  {
    id: videoId('hl-oars'),
    title: 'Carving a pair of oars from one spruce board',
    state: 'ok',
    unplayableOn: ['VISIONOS'],
    durationSeconds: 934,
    viewCount: 233_871,
    publishedAt: hoursBefore(83 * DAY),
    tracks: [manual('en', scripts.OARS)],
  },
  {
    id: videoId('hl-island'),
    title: 'Round the island in the Marigold',
    state: 'ok',
    durationSeconds: 1_480,
    viewCount: 702_650,
    publishedAt: hoursBefore(92 * DAY),
    tracks: [manual('en', scripts.PREMIERE), generated('en', () => scripts.PREMIERE)],
  },
  {
    id: videoId('hl-bells'),
    title: 'The bell of the trawler Constance',
    state: 'ok',
    durationSeconds: 187,
    viewCount: 5_604,
    publishedAt: hoursBefore(110 * DAY),
    tracks: [
      timed('en', [
        { startMs: 0, durationMs: 1_540, runs: [{ text: 'Listen.' }] },
        { startMs: 1_540, durationMs: null, runs: [{ text: '[bell rings]' }] },
        { startMs: 5_000, durationMs: 500, runs: [{ text: '' }] },
        {
          startMs: 5_700,
          durationMs: 3_239,
          runs: [{ text: 'She was cast in Truro ' }, { text: 'in 1911', italic: true }, { text: '.' }],
        },
        { startMs: 9_100, durationMs: 2_000, runs: [{ text: '   ' }] },
        { startMs: 11_000, durationMs: null, runs: [{ text: '♪' }] },
      ]),
    ],
  },
];
