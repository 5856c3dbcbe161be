import { createHash } from 'node:crypto';
import { type FakeResponse, invalidArgument, jsonResponse } from '../rendered-bodies.js';
import { videoById } from '../catalogue/catalogue.js';
import type { Channel, Client, Track, Video } from '../catalogue/model.js';
import type { Incoming } from '../incoming-request.js';
import type { ServerState } from '../settings.js';
import { at, type JsonObject } from '../json.js';
import { captionUrl } from './timedtext.js';
import { botCheck, type Playability, playabilityOf, reload } from './playability.js';
import { responseContext } from './response-context.js';

const TRANSLATIONS = { en: 'English', fr: 'French', de: 'German', ja: 'Japanese' };

/** `POST /youtubei/v1/player`: whether the video can be watched, what it is, and its caption tracks. */
export function player(incoming: Incoming, state: ServerState): FakeResponse {
  const { client, videoId } = incoming;
  if (client === null || videoId === null) return invalidArgument();
  const refusal = refusalOf(incoming, state);
  if (refusal) return jsonResponse(() => refusalResponse(refusal, incoming, state));
  const visitorData = state.visitors.dataFor(incoming);
  const written = (): JsonObject =>
    playerResponse(videoId, client, { visitorData, nowMs: Date.now(), refusal: webRefusal(incoming, state) });
  return jsonResponse(written, client === 'WEB' ? undefined : cacheKey(incoming, visitorData));
}

/** `POST /youtubei/v1/reel/reel_item_watch`: the same inside `playerResponse`; empty for an unavailable video. */
export function reel(incoming: Incoming, state: ServerState): FakeResponse {
  const { client, videoId } = incoming;
  if (client === null || videoId === null) return invalidArgument();
  const refusal = refusalOf(incoming, state);
  if (refusal) return jsonResponse(() => refusalResponse(refusal, incoming, state));
  const video = videoById(videoId)?.video;
  if (!video || video.state === 'deleted' || video.errorOn?.includes(client)) return jsonResponse(() => ({}));
  const visitorData = state.visitors.dataFor(incoming);
  const written = (): JsonObject => ({
    playerResponse: playerResponse(videoId, client, { visitorData, nowMs: Date.now() }),
  });
  return jsonResponse(written, cacheKey(incoming, visitorData));
}

/** The response of a player or reel request that is refused; it brings the visitor data of a new visitor. */
export function refusalResponse(playabilityStatus: JsonObject, incoming: Incoming, state: ServerState): JsonObject {
  const visitorData = state.visitors.issue(incoming, true);
  const response = { responseContext: responseContext(incoming.client, visitorData), playabilityStatus };
  return incoming.kind === 'reel' ? { playerResponse: response } : response;
}

function refusalOf(incoming: Incoming, { settings, visitors }: ServerState): JsonObject | undefined {
  return settings.visitorDataRequired && !visitors.isIssued(incoming) ? botCheck() : undefined;
}

/** WEB plays with a PO token and the timestamp of the current player script only; the metadata comes without them. */
function webRefusal(incoming: Incoming, { settings, tokens }: ServerState): JsonObject | undefined {
  if (incoming.client !== 'WEB') return undefined;
  if (!tokens.accepts(incoming)) return botCheck();
  const timestamp = at(incoming.body, 'playbackContext', 'contentPlaybackContext', 'signatureTimestamp');
  return Number(timestamp) === settings.signatureTimestamp ? undefined : reload();
}

/** Caption URLs, and with them the response, change every hour. */
function cacheKey({ kind, client, videoId }: Incoming, visitorData: string): string {
  return `${kind}:${videoId}:${client}:${visitorData}:${Math.floor(Date.now() / 3_600_000)}`;
}

interface Reply {
  visitorData: string;
  nowMs: number;
  refusal?: JsonObject | undefined;
}

function playerResponse(videoId: string, client: Client, { visitorData, nowMs, refusal }: Reply): JsonObject {
  const found = videoById(videoId);
  const playability = playabilityOf(found?.video, client);
  const { status, details, captions }: Playability = refusal
    ? { ...playability, status: refusal, captions: false }
    : playability;
  const tracks = captions ? (found?.video.tracks ?? []).filter(({ webOnly }) => client === 'WEB' || !webOnly) : [];
  return {
    responseContext: responseContext(client, visitorData),
    playabilityStatus: status,
    ...(captions && { streamingData: streamingData(videoId, client) }),
    // Without tracks the whole property is missing.
    ...(tracks.length > 0 && { captions: captionsOf(videoId, tracks, client, nowMs) }),
    ...(found && details && { videoDetails: videoDetails(found.channel, found.video) }),
    ...(client === 'WEB' && found && details && { microformat: microformat(found.channel, found.video) }),
  };
}

function captionsOf(videoId: string, tracks: readonly Track[], client: Client, nowMs: number): JsonObject {
  // The original language is that of the recognised speech; the platform prefers the captions in that language.
  const spoken = tracks.find((track) => track.generated)?.languageCode;
  const first = tracks.findIndex((track) => track.languageCode === spoken);
  return {
    playerCaptionsTracklistRenderer: {
      captionTracks: tracks.map((track) => captionTrack(videoId, track, client, nowMs)),
      audioTracks: [
        {
          captionTrackIndices: tracks.map((_, index) => index),
          defaultCaptionTrackIndex: Math.max(0, first),
          hasDefaultTrack: true,
          captionsInitialState: 'CAPTIONS_INITIAL_STATE_OFF_RECOMMENDED',
        },
      ],
      translationLanguages: Object.entries(TRANSLATIONS).map(([languageCode, text]) => ({
        languageCode,
        languageName: { runs: [{ text }] },
      })),
      defaultAudioTrackIndex: 0,
    },
  };
}

function captionTrack(videoId: string, track: Track, client: Client, nowMs: number): JsonObject {
  const text = track.generated ? `${track.languageName} (auto-generated)` : track.languageName;
  return {
    baseUrl: captionUrl(videoId, track, client, nowMs),
    name: { runs: [{ text }] },
    vssId: `${track.generated ? 'a' : ''}.${track.languageCode}`,
    languageCode: track.languageCode,
    ...(track.generated && { kind: 'asr' }),
    ...(track.rightToLeft && { rtl: true }),
    isTranslatable: true,
    trackName: '',
  };
}

function videoDetails(channel: Channel, video: Video): JsonObject {
  const thumbnails = [320, 1280].map((width) => ({
    url: `https://i.ytimg.com/vi/${video.id}/${width === 320 ? 'mqdefault' : 'hq720'}.jpg`,
    ...{ width, height: (width * 9) / 16 },
  }));
  return {
    videoId: video.id,
    title: video.title,
    lengthSeconds: String(video.durationSeconds),
    ...(video.state === 'live' && { isLive: true, isLiveDvrEnabled: true, isLowLatencyLiveStream: true }),
    ...(video.state === 'upcoming' && { isUpcoming: true }),
    channelId: channel.id,
    shortDescription: channel.description,
    thumbnail: { thumbnails },
    viewCount: String(video.viewCount),
    author: channel.name,
    isPrivate: false,
    isLiveContent: video.pastLive === true || video.state === 'live' || video.state === 'upcoming',
  };
}

/** Returned to the WEB client only: the exact dates, and whether the video is a Short. */
function microformat(channel: Channel, video: Video): JsonObject {
  const published = isoWithOffset(video.publishedAt);
  return {
    playerMicroformatRenderer: {
      title: { simpleText: video.title },
      description: { simpleText: channel.description },
      lengthSeconds: String(video.durationSeconds),
      externalChannelId: channel.id,
      isFamilySafe: video.state !== 'age-gated',
      viewCount: String(video.viewCount),
      publishDate: published,
      ownerChannelName: channel.name,
      ...liveDetails(video),
      uploadDate: published,
      isShortsEligible: video.short === true,
      externalVideoId: video.id,
    },
  };
}

function liveDetails({ state, pastLive }: Video): JsonObject {
  const isStream = state === 'live' || state === 'upcoming' || pastLive === true;
  return isStream ? { liveBroadcastDetails: { isLiveNow: state === 'live' } } : {};
}

/** In the platform's time zone, California: `2026-10-31T12:00:00-08:00`. */
function isoWithOffset(date: Date): string {
  return new Date(date.getTime() - 8 * 3_600_000).toISOString().replace('.000Z', '-08:00');
}

/** A full WEB player response has about 420 KB, those of the apps less; most of it is streaming data. */
const FORMATS: Record<Client, number> = {
  WEB: 300,
  VISIONOS: 90,
  ANDROID: 90,
  IOS: 90,
  ANDROID_REEL: 90,
  ANDROID_VR: 90,
};

/** The part of a player response that the service excludes with `$fields`. */
function streamingData(videoId: string, client: Client): JsonObject {
  const signature = createHash('sha512').update(videoId).digest('hex');
  return {
    expiresInSeconds: '21540',
    adaptiveFormats: Array.from({ length: FORMATS[client] }, (_, index) => format(videoId, index, signature)),
  };
}

function format(videoId: string, index: number, signature: string): JsonObject {
  return {
    itag: 133 + index,
    url: `https://fake-youtube.googlevideo.com/videoplayback?id=${videoId}&itag=${133 + index}&ip=0.0.0.0&sig=${signature}&lsig=${signature}`,
    mimeType: 'video/mp4; codecs="avc1.4d401f"',
    bitrate: 120_000 + index * 7_000,
    width: 640,
    height: 360,
    contentLength: String(9_000_000 + index * 40_000),
    quality: 'medium',
    fps: 25,
    qualityLabel: '360p',
    approxDurationMs: '721040',
    signatureCipher: `s=${signature}${signature}&sp=sig&url=https%3A%2F%2Ffake-youtube.googlevideo.com%2Fvideoplayback%3Fitag%3D${index}`,
  };
}
