import { VIDEO_FAILURES } from '../../domain/transcript.js';

const THUMBNAIL = 'https://i.ytimg.com/vi';
const PAGE = 'https://www.youtube.com/watch?v=';

/** An answer as the OpenAPI document shows it: one transcript, one video without captions. */
export const RESPONSE_EXAMPLE = {
  channel: { id: 'UCharbourlight__________', name: 'Harbour Light Workshop', handle: '@harbourlight' },
  results: [
    {
      videoId: 'hl-dinghy__',
      ok: true,
      metadata: {
        title: 'We rebuilt a 1962 dinghy from the keel up',
        url: `${PAGE}hl-dinghy__`,
        publishedAt: '2026-10-31T19:00:00Z',
        publishedText: '17 hours ago',
        durationSeconds: 612,
        viewCount: 1214330,
        thumbnailUrl: `${THUMBNAIL}/hl-dinghy__/hqdefault.jpg`,
        kind: 'video',
        captionTracks: [
          { languageCode: 'en', name: 'English', generated: false },
          { languageCode: 'en', name: 'English (auto-generated)', generated: true },
        ],
      },
      transcript: {
        en: [
          { text: 'Good morning from the boatyard.', start: 0.24, duration: 3.12 },
          { text: 'This little dinghy was built in 1962.', start: 3.4, duration: 2.9 },
        ],
      },
      cached: false,
    },
    {
      videoId: 'hl-silent__',
      ok: false,
      metadata: {
        title: 'One hour of planing larch, no talking',
        url: `${PAGE}hl-silent__`,
        publishedAt: null,
        publishedText: '3 weeks ago',
        durationSeconds: 3600,
        viewCount: 512044,
        thumbnailUrl: `${THUMBNAIL}/hl-silent__/hqdefault.jpg`,
        kind: 'video',
        captionTracks: [],
      },
      transcript: {},
      cached: false,
      error: { code: 'transcript_unavailable', ...VIDEO_FAILURES.transcript_unavailable },
    },
  ],
  summary: { total: 2, succeeded: 1, failed: 1, cached: 0, fetched: 1 },
};

/** The same as lines of JSON, an event each. */
export const NDJSON_EXAMPLE = [
  { type: 'channel', channel: RESPONSE_EXAMPLE.channel },
  ...RESPONSE_EXAMPLE.results.map((result) => ({ type: 'result', result })),
  { type: 'summary', summary: RESPONSE_EXAMPLE.summary },
]
  .map((event) => `${JSON.stringify(event)}\n`)
  .join('');
