import { describe, expect, it } from '@jest/globals';
import { captionTrack, microformatResponse, playerResponse, VIDEO_ID } from '../../../../test/pages/youtube-pages.js';
import { NO_DETAILS, type VideoDetails } from '../../../domain/transcript.js';
import { UnreadableError } from '../response-parsing.js';
import { mergeDetails, readPlayer, readPublishDate, readReel, type PlayerResult } from './player-response.js';
import { selectTracks } from './player-tracks.js';

const read = (response: unknown) => readPlayer(response, VIDEO_ID);
const refused = (playability: object, video: object | null = {}) => {
  const response = playerResponse({ playability, video: video ?? {} });
  return read(video === null ? { ...response, videoDetails: undefined } : response);
};
const DETAILS: VideoDetails = {
  ...NO_DETAILS,
  kind: 'video',
  title: 'x',
  thumbnailUrl: 'https://i.ytimg.com/vi/x/default.jpg',
  durationSeconds: 316,
  viewCount: 1_856_109,
  ...{ description: '', tags: [] },
};

function readTracks(captions: object): PlayerResult & { kind: 'tracks' } {
  const reading = read(playerResponse({ captions }));
  if (reading.kind !== 'tracks') throw new Error(`no tracks but ${reading.kind}`);
  return reading;
}

describe('a video with captions', () => {
  const captionTracks = [
    captionTrack('de'),
    captionTrack('en', { query: '&exp=xpe' }),
    captionTrack('en', { generated: true, name: 'English (auto-generated)' }),
  ];

  it('lists its tracks and whether each requires a token', () => {
    const reading = readTracks({ captionTracks });
    expect(reading.tracks.map(({ track, needsToken }) => [track.languageCode, track.generated, needsToken])).toEqual([
      ['de', false, false],
      ['en', false, true],
      ['en', true, false],
    ]);
    expect(reading.details).toEqual({
      ...DETAILS,
      captionTracks: [
        { languageCode: 'de', name: 'Name of de', generated: false },
        { languageCode: 'en', name: 'Name of en', generated: false },
        { languageCode: 'en', name: 'English (auto-generated)', generated: true },
      ],
    });
  });

  it.each(['&exp=xpv', '&exp=xpv,xpe', '&x=1&exp=a,xpe&y=2'])('needs a token for a URL with %s', (query) => {
    expect(readTracks({ captionTracks: [captionTrack('en', { query })] }).tracks[0]?.needsToken).toBe(true);
  });

  it.each(['&expire=xpe', '&exp=abc', '&q=xpe', ''])('needs none for a URL with %j', (query) => {
    expect(readTracks({ captionTracks: [captionTrack('en', { query })] }).tracks[0]?.needsToken).toBe(false);
  });

  it('returns absolute URLs', () => {
    const track = { ...captionTrack('en'), baseUrl: '/api/timedtext?v=x' };
    expect(readTracks({ captionTracks: [track] }).tracks[0]?.baseUrl).toBe('https://www.youtube.com/api/timedtext?v=x');
  });

  it("finds the platform's default track, also after an unreadable one", () => {
    const audioTracks = [{ defaultCaptionTrackIndex: 2, captionTrackIndices: [0, 1, 2] }];
    const { tracks, defaults } = readTracks({
      captionTracks: [{}, ...captionTracks],
      audioTracks,
      defaultAudioTrackIndex: 0,
    });
    expect(defaults).toEqual({ defaultTrack: tracks[1], audioLanguage: null });
  });

  it('finds the original among dubbed audio tracks', () => {
    const audioTracks = [
      { audioTrackId: 'fr.3', defaultCaptionTrackIndex: 0 },
      { audioTrackId: 'en-US.4', defaultCaptionTrackIndex: 1 },
      { audioTrackId: 'es.10', defaultCaptionTrackIndex: 0 },
    ];
    const { tracks, defaults } = readTracks({ captionTracks, audioTracks, defaultAudioTrackIndex: 0 });
    expect(defaults).toEqual({ defaultTrack: tracks[1], audioLanguage: 'en-US' });
  });

  it('lists a forced track only when its language has no other, and knows it as the default either way', () => {
    const forced = { ...captionTrack('en', { name: 'English - forced' }), kind: 'frc' };
    const audioTracks = [{ defaultCaptionTrackIndex: 0, captionTrackIndices: [0, 1] }];
    const listed = (...others: object[]) => {
      const { tracks, details, defaults } = readTracks({ captionTracks: [forced, ...others], audioTracks });
      expect(details.captionTracks).toEqual(tracks.map(({ track }) => track));
      expect(defaults.defaultTrack?.track.name).toBe('English - forced');
      return tracks.map(({ track }) => track.name);
    };
    expect(listed()).toEqual(['English - forced']);
    expect(listed(captionTrack('fr', { name: 'French' }))).toEqual(['English - forced', 'French']);
    expect(listed(captionTrack('en', { generated: true, name: 'Generated' }))).toEqual(['Generated']);
    expect(listed(captionTrack('en-GB', { name: 'British' }))).toEqual(['British']);
  });

  it('takes a forced track for * only when the original language has no other', () => {
    const forced = { ...captionTrack('en', { name: 'English - forced' }), kind: 'frc' };
    const audioTracks = [{ audioTrackId: 'en.4', defaultCaptionTrackIndex: 0, captionTrackIndices: [0, 1] }];
    const chosen = (languages: string[], ...others: object[]) => {
      const { tracks, defaults } = readTracks({ captionTracks: [forced, ...others], audioTracks });
      return selectTracks(tracks, defaults, languages).map(({ track }) => track.name);
    };
    const [french, british] = [captionTrack('fr', { name: 'French' }), captionTrack('en-GB', { name: 'British' })];
    for (const languages of [['*'], ['de', '*'], ['de|*'], []]) {
      expect(chosen(languages, french)).toEqual(['English - forced']);
      expect(chosen(languages, french, british)).toEqual(['British']);
    }
    expect(chosen(['fr', '*'], french, british)).toEqual(['French']);
    expect(chosen(['fr|*'], british)).toEqual(['British']);
  });

  it('never lists a machine translation', () => {
    const reading = readTracks({ captionTracks: [captionTrack('fr', { query: '&tlang=fr' }), captionTrack('en')] });
    expect(reading.tracks.map(({ track }) => track.languageCode)).toEqual(['en']);
  });
});

describe('a playable video', () => {
  it('without captions has none', () => {
    const none = { kind: 'no-captions', details: { ...DETAILS, captionTracks: [] } };
    for (const fields of [{}, { captions: {} }, { captions: { captionTracks: [] } }])
      expect(read(playerResponse(fields))).toMatchObject(none);
  });

  it.each([
    ['tracks none of which can be read', { captions: { captionTracks: [{}, { baseUrl: 'x' }] } }],
    ['tracks that only its audio names', { captions: { audioTracks: [{ captionTrackIndices: [0] }] } }],
    ['tracks that are null', { captions: { captionTracks: null } }],
    ['tracks that are no list', { captions: { captionTracks: { 0: {} } } }],
  ])('is never reported as one without captions for %s', (_, fields) => {
    expect(() => read(playerResponse(fields))).toThrow(UnreadableError);
  });

  it.each([
    { ...playerResponse(), captions: { otherTracklistRenderer: {} } },
    { ...playerResponse(), captions: null },
    { ...playerResponse(), videoDetails: undefined },
  ])('is never reported as one without captions when the response is truncated or has a new form', (response) => {
    expect(() => read(response)).toThrow(UnreadableError);
  });

  it('is live while its length is open, with or without captions', () => {
    const video = { isLive: true, lengthSeconds: '0' };
    expect(read(playerResponse({ video, captions: { captionTracks: [captionTrack('en')] } }))).toMatchObject({
      kind: 'live',
      details: { kind: 'live', durationSeconds: null },
    });
  });

  it('is a video when it is longer than any Short, and of no kind when it can be one', () => {
    const kindOf = (lengthSeconds: string) => read(playerResponse({ video: { lengthSeconds } })).details.kind;
    expect(['182', '181'].map(kindOf)).toEqual(['video', null]);
  });

  it('is upcoming when the response states it', () => {
    const offlineSlate = { liveStreamOfflineSlateRenderer: { scheduledStartTime: '1780000000' } };
    const slate = { liveStreamability: { liveStreamabilityRenderer: { offlineSlate } } };
    expect(read(playerResponse({ video: { isUpcoming: true } }))).toMatchObject({
      kind: 'upcoming',
      details: { kind: 'upcoming' },
    });
    expect(read(playerResponse({ playability: slate }))).toMatchObject({ kind: 'upcoming' });
  });

  it('that has just ended as a stream has no captions yet', () => {
    const video = { isLiveContent: true, isPostLiveDvr: true, lengthSeconds: '7200' };
    const details = { ...DETAILS, durationSeconds: 7200 };
    expect(read(playerResponse({ video }))).toMatchObject({ kind: 'live', details: { ...details, captionTracks: [] } });
    const captions = { captionTracks: [captionTrack('en')] };
    expect(read(playerResponse({ video, captions }))).toMatchObject({ kind: 'tracks', details: { kind: 'video' } });
  });

  it.each([{ videoId: 'aQvGIIdgFDM' }, { videoId: 'zzzzzzzzzzz', title: 'This content is not available on this app' }])(
    'that tells to update the app, sent instead of the requested one, means that the client is retired: %j',
    (video) => {
      const captions = { captionTracks: [captionTrack('en')] };
      expect(read(playerResponse({ video, captions }))).toMatchObject({ kind: 'client-retired', details: NO_DETAILS });
    },
  );

  it('other than the requested one is reported as other-video, whatever its status', () => {
    for (const status of ['OK', 'ERROR']) {
      const response = playerResponse({
        playability: { status },
        video: { videoId: 'zzzzzzzzzzz' },
        captions: { captionTracks: [captionTrack('en')] },
      });
      expect(read(response)).toMatchObject({ kind: 'other-video', details: NO_DETAILS });
    }
  });
});

describe('a refusal', () => {
  const RETIRED =
    'The following content is not available on this app.. Watch this content on the latest version of YouTube.';
  const screen = (text: string, field = 'subreason') => ({
    errorScreen: { playerErrorMessageRenderer: { [field]: { runs: [{ text }] } } },
  });
  const interstitial = (title: string, description = 'Words') => ({
    errorScreen: {
      playerInterstitialRenderer: {
        content: { interstitialViewModel: { title: { content: title }, description: { content: description } } },
      },
    },
  });
  const button = (text: string) => ({ proceedButton: { buttonRenderer: { text: { simpleText: text } } } });
  const captcha = { playerCaptchaViewModel: { title: { content: 'Words' } } };
  const reload = 'The page needs to be reloaded.';
  const old = 'YouTube is no longer supported on this application or device.';
  const restricted =
    'This video is restricted. Please check the Google Workspace administrator and/or the network administrator restrictions.';
  const later = "This content isn't available, try again later.";
  const removed = 'The uploader removed it. This video has been removed by the uploader';

  /** `video`: the details of the video, which the response has unless it is null. */
  it.each<[string, string, string | undefined, object?, (object | null)?]>([
    ['bot-check', 'LOGIN_REQUIRED', 'Sign in to confirm you’re not a bot', {}, null],
    ['bot-check', 'LOGIN_REQUIRED', "Sign in to confirm you're not a bot", {}, null],
    ['bot-check', 'LOGIN_REQUIRED', 'Please sign in'],
    ['bot-check', 'LOGIN_REQUIRED', 'Words in no known language', {}, null],
    ['unknown-status', 'LOGIN_REQUIRED', 'Words in no known language'],
    ['bot-check', 'UNPLAYABLE', 'This content isn’t available, try again later.'],
    ['bot-check', 'ERROR', 'Video unavailable', screen(later), null],
    ['age-restricted', 'LOGIN_REQUIRED', 'Words in no known language', { desktopLegacyAgeGateReason: 1 }],
    ['age-restricted', 'LOGIN_REQUIRED', 'This video may be inappropriate for some users.'],
    ['age-restricted', 'LOGIN_REQUIRED', 'Sign in to confirm your age'],
    ['age-restricted', 'LOGIN_REQUIRED', 'Sign in to verify your age'],
    ['age-restricted', 'AGE_VERIFICATION_REQUIRED', undefined],
    ['private', 'LOGIN_REQUIRED', 'This video is private', {}, null],
    ['private', 'LOGIN_REQUIRED', undefined, { messages: ['This is a private video.'] }, null],
    ['private', 'UNPLAYABLE', undefined, {}, { isPrivate: true }],
    ['members-only', 'UNPLAYABLE', "This video is available to this channel's members on level: Gold (or higher)."],
    ['members-only', 'UNPLAYABLE', 'This video is available to this channel’s members'],
    ['members-only', 'UNPLAYABLE', 'Join this channel to get access to members-only content like this video'],
    ['session-refused', 'UNPLAYABLE', reload],
    ['session-refused', 'ERROR', 'Video unavailable', screen(reload), null],
    ['client-retired', 'ERROR', RETIRED, {}, null],
    ['client-retired', 'UNPLAYABLE', 'Video unavailable', screen(RETIRED)],
    ['client-retired', 'ERROR', 'This video is unavailable', screen(old, 'reason'), null],
    ['session-refused', 'UNPLAYABLE', 'Video unavailable', interstitial('Video unavailable', reload)],
    ['session-refused', 'OK', undefined, { errorScreen: captcha }],
    ['session-refused', 'UNPLAYABLE', 'Words', { errorScreen: { lines: [{ captchaRenderer: {} }] } }],
    [
      'session-refused',
      'ERROR',
      'Video unavailable',
      { errorScreen: { playerErrorMessageRenderer: { extra: captcha } } },
    ],
    ['bot-check', 'ERROR', 'Video unavailable', interstitial('Sign in to confirm you’re not a bot'), null],
    ['bot-check', 'UNPLAYABLE', 'Video unavailable', { errorScreen: { newRenderer: { lines: [{ text: later }] } } }],
    ['client-retired', 'UNPLAYABLE', 'Video unavailable', interstitial('Update', RETIRED)],
    ['client-retired', 'ERROR', 'Please update your app to watch this video.', {}, null],
    [
      'members-only',
      'UNPLAYABLE',
      'Video unavailable',
      interstitial('Members only', 'Join this channel to get access'),
    ],
    ['age-restricted', 'LOGIN_REQUIRED', undefined, interstitial('Sign in to confirm your age')],
    ['private', 'LOGIN_REQUIRED', undefined, interstitial('Private video'), null],
    [
      'private',
      'LOGIN_REQUIRED',
      undefined,
      { newScreen: { runs: [{ text: 'This video ' }, { text: 'is private' }] } },
    ],
    ['unavailable', 'ERROR', 'Video unavailable', interstitial('This video has been removed by the uploader'), null],
    ['unavailable', 'ERROR', 'Video unavailable', { errorScreen: { playerErrorMessageRenderer: button('Try again') } }],
    ['unplayable', 'UNPLAYABLE', 'Pay to watch', { errorScreen: { offerRenderer: { itemTitle: 'My private video' } } }],
    ['unplayable', 'UNPLAYABLE', 'Video unavailable', screen('This content isn’t available.')],
    ['network-restricted', 'UNPLAYABLE', 'Video unavailable', screen(restricted)],
    ['network-restricted', 'ERROR', 'Video unavailable', screen(restricted), null],
    ['network-restricted', 'UNPLAYABLE', 'This video is unavailable with Restricted Mode enabled.'],
    ['unavailable', 'ERROR', 'This video is no longer available.', {}, null],
    ['unavailable', 'ERROR', undefined, {}, null],
    ['unavailable', 'UNPLAYABLE', undefined, screen(removed)],
    ['unavailable', 'LIVE_STREAM_OFFLINE', 'This live stream recording is not available.'],
    ['upcoming', 'LIVE_STREAM_OFFLINE', 'This live event will begin in 3 days.', {}, { isUpcoming: true }],
    ['upcoming', 'LIVE_STREAM_OFFLINE', 'Premieres in 3 hours'],
    ['upcoming', 'UNPLAYABLE', 'x', {}, { isUpcoming: true }],
    ['live', 'LIVE_STREAM_OFFLINE', 'This live event has ended.'],
    ['live', 'UNPLAYABLE', 'This live event has ended.'],
    ['live', 'ERROR', 'This live stream has ended.', {}, null],
    ['live', 'UNPLAYABLE', 'We’re processing this video. Check back later.'],
    ['live', 'ERROR', 'Video unavailable', screen('Processing video…'), null],
    ['live', 'ERROR', 'This video is still being processed. Try again later.', {}, null],
    ['live', 'LIVE_STREAM_OFFLINE', 'We are processing it'],
    [
      'unavailable',
      'ERROR',
      'This live event has ended.',
      screen('This live stream recording is not available.'),
      null,
    ],
    ['unavailable', 'UNPLAYABLE', 'This live event has ended. This video has been removed by the uploader'],
    ['unplayable', 'UNPLAYABLE', 'Your rental has ended'],
    ['unknown-status', 'ERROR', 'An error occurred while processing your request', {}, null],
    ['live', 'LIVE_STREAM_OFFLINE', 'We are getting it ready', {}, { isPostLiveDvr: true }],
    ['unplayable', 'UNPLAYABLE', 'This video is not available'],
    ['unplayable', 'UNPLAYABLE', 'This video is only available to Music Premium members'],
    ['country-restricted', 'UNPLAYABLE', 'The uploader has not made this video available in your country'],
    ['country-restricted', 'ERROR', 'This video contains content from Label, who has blocked it in your country'],
    ['unplayable', 'CONTENT_CHECK_REQUIRED', undefined],
    ['unknown-status', 'ERROR', 'An error occurred. Please try again later.', {}, null],
    ['unknown-status', 'UNPLAYABLE', 'Something went wrong'],
    ['unknown-status', 'SOMETHING_NEW', 'x'],
  ])('is reported as %s for %s, %j', (kind, status, reason, playability = {}, video = {}) => {
    expect(refused({ status, reason, ...playability }, video).kind).toBe(kind);
  });

  it('has the title and the widest thumbnail where the platform gave them', () => {
    const sizes = [1280, 320].map((width) => ({ url: `//i.ytimg.com/${width}.jpg`, width }));
    expect(refused({ status: 'UNPLAYABLE' }, { thumbnail: { thumbnails: sizes } })).toMatchObject({
      details: { title: 'x', thumbnailUrl: 'https://i.ytimg.com/1280.jpg' },
    });
    const unusable = { title: 5, thumbnail: { thumbnails: [{ url: 'javascript:x', width: 1 }, null] } };
    expect(refused({ status: 'UNPLAYABLE' }, unusable)).toMatchObject({ details: { title: null, thumbnailUrl: null } });
  });

  it('includes the channel, the description and the tags, as far as they can be read', () => {
    const video = { channelId: 'UCx', author: 'A channel', shortDescription: 'Words.', keywords: ['a', 1, '', 'b'] };
    const known = refused({ status: 'UNPLAYABLE' }, video).details;
    expect(known).toMatchObject({ channel: { id: 'UCx', name: 'A channel' }, description: 'Words.', tags: ['a', 'b'] });
    for (const half of [{ channelId: 'UCx' }, { author: 'A channel' }])
      expect(refused({ status: 'UNPLAYABLE' }, half).details.channel).toBeNull();
    // Another client leaves them out.
    expect(mergeDetails(known, DETAILS)).toMatchObject({
      channel: known.channel,
      description: 'Words.',
      tags: ['a', 'b'],
    });
    expect(mergeDetails(DETAILS, known)).toMatchObject({
      channel: known.channel,
      description: 'Words.',
      tags: ['a', 'b'],
    });
  });

  it('includes the details of the video, but no tracks', () => {
    expect(refused({ status: 'UNPLAYABLE', reason: 'Blocked here' })).toEqual({
      kind: 'unplayable',
      status: 'UNPLAYABLE',
      reason: 'Blocked here',
      details: DETAILS,
    });
    expect(refused({ status: 'NEW', reason: 'x' }, null)).toEqual({
      kind: 'unknown-status',
      status: 'NEW',
      reason: 'x',
      details: NO_DETAILS,
    });
  });

  it('is of a running stream only while it is live', () => {
    const kindFor = (video: object) =>
      refused({ status: 'UNPLAYABLE', reason: 'This live event has ended.' }, { lengthSeconds: '600', ...video })
        .details;
    expect(kindFor({ isLive: true })).toMatchObject({ kind: 'live', durationSeconds: null });
    expect(kindFor({})).toMatchObject({ kind: 'video', durationSeconds: 600 });
  });

  it('reports every text of its screens once, without the labels of buttons', () => {
    const subreason = { runs: [{ text: 'This content ' }, { text: 'isn’t available.' }] };
    const renderer = { reason: { simpleText: 'Video unavailable' }, subreason, ...button('Learn more about this') };
    const playability = { status: 'ERROR', reason: 'Video unavailable', contextParams: 'Q0FFU0FnZ0I=' };
    expect(refused({ ...playability, errorScreen: { playerErrorMessageRenderer: renderer } }, null)).toMatchObject({
      kind: 'unavailable',
      reason: 'Video unavailable\nThis content isn’t available.',
    });
  });

  it('is read to a bounded depth and size', () => {
    const nested = (depth: number) => {
      let node: object = { text: 'This video is private' };
      for (let level = 0; level < depth; level++) node = { a: node };
      return node;
    };
    expect(refused({ status: 'UNPLAYABLE', errorScreen: nested(8) }).kind).toBe('private');
    expect(refused({ status: 'UNPLAYABLE', errorScreen: nested(20_000) }).kind).toBe('unplayable');
    const many = Array.from({ length: 100_000 }, (_, index) => `Text ${index}`);
    const reading = refused({ status: 'UNPLAYABLE', reason: 'Words', messages: many });
    expect(reading.kind === 'unplayable' && reading.reason.length).toBeLessThanOrEqual(1_000);
  });

  it('is unreadable without a status', () => {
    for (const response of [{}, null, [], { error: {} }, { playabilityStatus: {} }])
      expect(() => read(response)).toThrow(UnreadableError);
  });
});

describe('a reel', () => {
  it('is a player response', () => {
    expect(readReel({ playerResponse: playerResponse() }, VIDEO_ID).kind).toBe('no-captions');
    expect(readReel({ playerResponse: playerResponse({ video: { videoId: 'zzzzzzzzzzz' } }) }, VIDEO_ID).kind).toBe(
      'other-video',
    );
  });

  it('without content means an unavailable video', () => {
    expect(readReel({}, VIDEO_ID)).toMatchObject({ kind: 'unavailable', details: NO_DETAILS });
    expect(readReel({ responseContext: {} }, VIDEO_ID).kind).toBe('unavailable');
  });

  it.each([null, [], 'x', { overlay: {} }, { playerResponse: {} }])('is unreadable as %j', (response) => {
    expect(() => readReel(response, VIDEO_ID)).toThrow(UnreadableError);
  });
});

describe('the publish date', () => {
  it('is exact and in UTC', () => {
    expect(readPublishDate(microformatResponse(), VIDEO_ID)).toBe('2015-01-28T05:14:36Z');
    const dates = { publishDate: '2015-01-27', uploadDate: '2015-01-26T21:14:36Z' };
    expect(readPublishDate(microformatResponse(dates), VIDEO_ID)).toBe('2015-01-26T21:14:36Z');
    expect(readPublishDate(microformatResponse({ ...dates, uploadDate: undefined }), VIDEO_ID)).toBeNull();
  });

  it('is unreadable when it is missing or belongs to another video', () => {
    for (const response of [{}, microformatResponse({}, { videoId: 'zzzzzzzzzzz' })])
      expect(() => readPublishDate(response, VIDEO_ID)).toThrow(UnreadableError);
  });
});

describe('mergeDetails', () => {
  const captionTracks = [{ languageCode: 'en', name: 'English', generated: false }];
  const known = { ...DETAILS, viewCount: 0, captionTracks };

  it('keeps known values where the new response has none', () => {
    expect(mergeDetails(known, NO_DETAILS)).toEqual(known);
    expect(mergeDetails(known, { title: 'new' })).toEqual({ ...known, title: 'new' });
  });

  it('does not replace the tracks of one client by the empty list of another', () => {
    expect(mergeDetails(known, { captionTracks: [] })).toEqual(known);
    expect(mergeDetails(NO_DETAILS, { captionTracks: [] }).captionTracks).toEqual([]);
    expect(mergeDetails({ ...known, captionTracks: [] }, { captionTracks })).toEqual(known);
  });
});
