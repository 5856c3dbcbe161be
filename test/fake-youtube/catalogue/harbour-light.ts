import * as scripts from './harbour-light-scripts.js';
import { type Channel, channelOf, film } from './model.js';
import { generated, manual, needingToken, silentlyNeedingToken, timed } from './track.js';
import { talk } from './speech.js';

/** How many captions the longest video has. */
const LONGEST_CUES = 10_000;

/** The main channel: 17 of its newest 25 uploads have a transcript; the others cover every reason for having none. */
export const HARBOUR_LIGHT: Channel = channelOf('harbourlight', {
  name: 'Harbour Light Workshop',
  handle: '@harbourlight',
  customNames: ['HarbourLightWorkshop'],
  userNames: ['harbourlightboats'],
  description: 'Wooden boats, old tools and the lighthouse next door. A new film when the varnish is dry.',
  uploads: () => [
    // The 13 newest uploads, from the announced event down.
    film('hl-regatta', 'The Lantern Regatta from the breakwater (live)', {
      hours: 1,
      seconds: 0,
      views: 0,
      state: 'upcoming',
    }),
    film('hl-tidecam', 'Harbour cam: the tide comes in 🌊', { hours: 3, seconds: 0, views: 214, state: 'live' }),
    film('hl-dinghy', 'We rebuilt a 1962 dinghy from the keel up', { hours: 17, seconds: 612, views: 1_214_330 }, [
      manual('en', scripts.DINGHY),
      generated('en', () => scripts.DINGHY),
    ]),
    film('hl-bowline', 'A bowline in 20 seconds #shorts', { days: 2, seconds: 20, views: 4_870_112, short: true }, [
      generated('en', () => scripts.BOWLINE),
    ]),
    film('hl-sharp', 'Razor-sharp chisels with sandpaper and window glass', { days: 4, seconds: 745, views: 86_540 }, [
      generated('en', () => scripts.SHARPENING),
    ]),
    film('hl-keeper', 'The lighthouse keeper’s last log book', { days: 6, seconds: 431, views: 302_118 }, [
      manual('de', scripts.KEEPER_DE),
      manual('en', scripts.KEEPER_EN),
      generated('en', () => scripts.KEEPER_EN),
      manual('fr', scripts.KEEPER_FR),
      manual('es', scripts.KEEPER_ES),
    ]),
    film('hl-crew', 'Crew only: the plans for the next boat', {
      days: 8,
      seconds: 1_904,
      views: 812,
      state: 'members-only',
    }),
    film(
      'hl-pearl',
      'صانع القوارب من الخليج | A boatbuilder from the Gulf',
      { days: 10, seconds: 918, views: 45_009 },
      [manual('ar', scripts.PEARL_AR)],
    ),
    film('hl-rope', 'חבל בעבודת יד: making rope by hand', { days: 12, seconds: 505, views: 12_760 }, [
      manual('iw', scripts.ROPE_HE),
    ]),
    film('hl-foghorn', '霧笛のしくみ — how the old foghorn works', { days: 15, seconds: 388, views: 77_431 }, [
      manual('ja', scripts.FOG_JA),
      generated('ja', () => scripts.FOG_JA),
    ]),
    film('hl-nets', '补渔网 / 補漁網: mending nets with Mrs Lin', { days: 18, seconds: 640, views: 98_205 }, [
      manual('zh-Hans', scripts.NETS_ZH_HANS),
      manual('zh-Hant', scripts.NETS_ZH_HANT),
    ]),
    film('hl-signs', 'Painting signs: "Salt & Vinegar" <in gold> 🎨', { days: 21, seconds: 703, views: 21_377 }, [
      { ...manual('en', scripts.SIGNS), timesAsStrings: true },
    ]),
    film('hl-silent', 'One hour of planing larch, no talking', { days: 24, seconds: 3_600, views: 512_044 }),
    // The 14th to the 25th of the newest uploads.
    film(
      'hl-stream',
      'Twelve hours in the boatyard (the whole stream)',
      { days: 27, seconds: 43_200, views: 9_310, pastLive: true },
      [generated('en', () => talk(1962, LONGEST_CUES))],
    ),
    film('hl-private', 'Owen’s birthday', { days: 30, seconds: 95, views: 4, state: 'private' }),
    film('hl-glue', 'Which glue survives the sea? #shorts', { days: 35, seconds: 48, views: 1_050_999, short: true }, [
      manual('en', talk(35, 6)),
    ]),
    film('hl-planks', 'Caulking: how a wooden boat stays dry', { days: 40, seconds: 559, views: 64_120 }, [
      needingToken(manual('en', talk(40, 6)), ['WEB', 'VISIONOS']),
    ]),
    film('hl-token', 'The dinghy’s first sail, cut from an old one', { days: 45, seconds: 822, views: 31_006 }, [
      needingToken(manual('en', talk(83, 6))),
    ]),
    film(
      'hl-wreck',
      'The wreck below the point (contains the wreck)',
      { days: 52, seconds: 1_210, views: 150_733, state: 'age-gated' },
      [manual('en', scripts.PREMIERE)],
    ),
    film('hl-walk', 'Where we are: a walk round the harbour', { days: 60, seconds: 476, views: 18_450 }, [
      manual('en-GB', talk(60, 6)),
    ]),
    film('hl-deleted', 'Test upload, please ignore', { days: 68, seconds: 12, views: 1, state: 'deleted' }),
    film('hl-werft', 'Zu Besuch in der Werft: ein Tag an der Förde', { days: 75, seconds: 1_033, views: 40_288 }, [
      generated('de', () => scripts.VISIT_DE),
    ]),
    film(
      'hl-oars',
      'Carving a pair of oars from one spruce board',
      { days: 83, seconds: 934, views: 233_871, unplayableOn: ['VISIONOS'] },
      [manual('en', talk(83, 6))],
    ),
    film('hl-island', 'Round the island in the Marigold', { days: 92, seconds: 1_480, views: 702_650 }, [
      manual('en', scripts.PREMIERE),
      generated('en', () => scripts.PREMIERE),
    ]),
    film('hl-bells', 'The bell of the trawler Constance', { days: 110, seconds: 187, views: 5_604 }, [
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
    ]),
    // Below the newest 25: rarer problems, with some plain videos in between.
    // The channel's own captions need a token, the generated ones do not: the restriction is per track, not per video.
    film('hl-mixed', 'Splicing an eye, slowly', { days: 130, seconds: 366, views: 8_920 }, [
      needingToken(manual('en', talk(83, 6))),
      generated('en', () => talk(83, 6)),
    ]),
    film('hl-empty', 'What is in the ditty bag?', { days: 150, seconds: 290, views: 3_115 }, [
      silentlyNeedingToken(manual('en', talk(35, 6)), ['WEB', 'VISIONOS']),
    ]),
    film('hl-void', 'What is in the other ditty bag?', { days: 170, seconds: 288, views: 2_040 }, [
      silentlyNeedingToken(manual('en', talk(35, 6))),
    ]),
    film('hl-abroad', 'Our film for the island’s television', {
      days: 190,
      seconds: 1_500,
      views: 990,
      state: 'country-blocked',
    }),
    film('hl-shanty', 'Shanties of the rope walk (full album)', {
      days: 240,
      seconds: 2_700,
      views: 61_000,
      state: 'premium',
    }),
    film('hl-timber', 'Uma serração que canta: choosing timber by ear', { days: 400, seconds: 540, views: 1 }, [
      manual('pt', scripts.TIMBER_PT),
    ]),
    film('hl-first', 'Hello from the workshop', { days: 800, seconds: 61, views: 0 }, [manual('en', talk(60, 6))]),
  ],
});
