import { type Channel, channelOf, film, type Track, type Video } from './model.js';
import { italic } from './speech.js';
import { generated, manual } from './track.js';

const FLAGS: readonly string[] = [
  'Two balls and a cone: the harbour is closed.',
  'The flag above them says for how long.',
  'Answer with the same flag, and wait.',
];

function lesson(name: string, title: string, tracks: readonly Track[], differences: Partial<Video> = {}): Video {
  return film(name, title, { days: 20, seconds: 260, views: 3_900, ...differences }, tracks);
}

/** Rare forms of captions and refusals. */
export const SIGNAL_STATION: Channel = channelOf('signalstation', {
  name: 'Signal Station',
  handle: '@signalstation',
  description: 'Flags, lamps and cones.',
  uploads: () => [
    lesson('ss-ended', 'The regatta, signal by signal (stream)', [], { pastLive: true, justEnded: true }),
    lesson('ss-forced', 'A visit from the French pilot', [
      { ...manual('en', ['SIGN IN FRENCH: closed']), languageName: 'English - forced', forced: true },
      generated('en', () => FLAGS),
    ]),
    lesson('ss-signs', 'The harbour without a word', [{ ...manual('en', ['SIGN: closed']), forced: true }]),
    lesson('ss-old-code', 'Signals in Haifa', [manual('en', FLAGS), manual('iw', ['שני כדורים וחרוט'])]),
    lesson('ss-srv3', 'The lamp', [
      { ...manual('en', [['Short, ', italic('long'), ', short.'], 'Salt & smoke > fog.']), alwaysSrv3: true },
    ]),
    lesson('ss-entities', 'The log book', [
      manual('en', ['Caf&eacute; &amp;mdash; H<sub>2</sub>O', '\u202b\u202c', 'Wait <00:00:04.200><c>here</c>']),
    ]),
    lesson('ss-blank', 'The station by night', [manual('en', [])]),
    lesson('ss-crew', 'The code book', [], { state: 'members-only', interstitial: true }),
    lesson('ss-night', 'The wreckers', [], { state: 'age-gated', interstitial: true }),
    lesson('ss-update', 'The cone', [manual('en', FLAGS)], { updateNoticeOn: ['VISIONOS', 'ANDROID'] }),
  ],
});
