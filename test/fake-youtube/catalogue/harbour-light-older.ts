import * as languages from './harbour-light-languages.js';
import * as scripts from './harbour-light-scripts.js';
import { hoursBefore, type Video, videoId } from './model.js';
import { generated, manual, needingToken, silentlyNeedingToken } from './track.js';

const DAY = 24;

/** Below the newest 25: rarer problems, with some plain videos in between. */
export const HARBOUR_LIGHT_OLDER: readonly Video[] = [
  {
    id: videoId('hl-mixed'),
    title: 'Splicing an eye, slowly',
    state: 'ok',
    durationSeconds: 366,
    viewCount: 8_920,
    publishedAt: hoursBefore(130 * DAY),
    // The channel's own captions need a token, the generated ones do not: the restriction is per track, not per video.
    tracks: [needingToken(manual('en', scripts.OARS)), generated('en', () => scripts.OARS)],
  },
  {
    id: videoId('hl-empty'),
    title: 'What is in the ditty bag?',
    state: 'ok',
    durationSeconds: 290,
    viewCount: 3_115,
    publishedAt: hoursBefore(150 * DAY),
    tracks: [silentlyNeedingToken(manual('en', scripts.GLUE), ['WEB', 'VISIONOS'])],
  },
  {
    id: videoId('hl-void'),
    title: 'What is in the other ditty bag?',
    state: 'ok',
    durationSeconds: 288,
    viewCount: 2_040,
    publishedAt: hoursBefore(170 * DAY),
    tracks: [silentlyNeedingToken(manual('en', scripts.GLUE))],
  },
  {
    id: videoId('hl-abroad'),
    title: 'Our film for the island’s television',
    state: 'country-blocked',
    durationSeconds: 1_500,
    viewCount: 990,
    publishedAt: hoursBefore(190 * DAY),
    tracks: [],
  },
  {
    id: videoId('hl-shanty'),
    title: 'Shanties of the rope walk (full album)',
    state: 'premium',
    durationSeconds: 2_700,
    viewCount: 61_000,
    publishedAt: hoursBefore(240 * DAY),
    tracks: [],
  },
  {
    id: videoId('hl-timber'),
    title: 'Uma serração que canta: choosing timber by ear',
    state: 'ok',
    durationSeconds: 540,
    viewCount: 1,
    publishedAt: hoursBefore(400 * DAY),
    tracks: [manual('pt', languages.TIMBER_PT)],
  },
  {
    id: videoId('hl-first'),
    title: 'Hello from the workshop',
    state: 'ok',
    durationSeconds: 61,
    viewCount: 0,
    publishedAt: hoursBefore(800 * DAY),
    tracks: [manual('en', scripts.HARBOUR_WALK)],
  },
];
