import { createHash } from 'node:crypto';
import { type FakeResponse, invalidArgument, jsonResponse } from '../rendered-bodies.js';
import type { Channel, Client, Track, Video } from '../catalogue/model.js';
import type { Incoming } from '../incoming-request.js';
import type { ServerState } from '../settings.js';
import { at, type JsonObject } from '../json.js';
import { captionUrl } from './timedtext.js';
import { botCheck, playabilityOf, reload } from './playability.js';
import { SIGNATURE_TIMESTAMP } from './po-token.js';
import { responseContext } from './response-context.js';

/**
 * `POST /youtubei/v1/player`: whether the video can be watched, what it is, and its caption tracks. `reel/reel_item_watch` has
 * the same inside `playerResponse`, and is empty for an unavailable video.
 */
export function player(incoming: Incoming, state: ServerState): FakeResponse {
  const { kind, client, videoId } = incoming;
  if (client === null || videoId === null) return invalidArgument();
  if (state.settings.visitorDataRequired && !state.visitors.isIssued(incoming))
    return jsonResponse(() => refusalResponse(botCheck(), incoming, state));
  const found = withinCountry(state.catalogue.videoById(videoId), incoming, state);
  const playability = playabilityOf(found?.video, client);
  const isReel = kind === 'reel';
  if (isReel && playability.status['status'] === 'ERROR') return jsonResponse(() => ({}));
  const visitorData = state.visitors.dataFor(incoming);
  const status = webRefusal(incoming, state.tokens) ?? playability.status;
  const written = (): JsonObject => ({
    responseContext: responseContext(client, visitorData),
    playabilityStatus: status,
    ...(found && status['status'] === 'OK' && playing(found.video, client)),
    ...(found && playability.details && detailsOf(found.channel, shownTo(client, found.video), client)),
  });
  const json = () => (isReel ? { playerResponse: written() } : written());
  // Caption URLs, and with them the response, change every hour.
  const hour = Math.floor(Date.now() / 3_600_000);
  const revision = found ? state.catalogue.revision(found.channel.id) : '';
  const key = `${kind}:${videoId}:${incoming.egress}:${client}:${visitorData}:${hour}:${revision}`;
  return jsonResponse(json, client === 'WEB' ? undefined : key);
}

/** The response of a player or reel request that is refused; it brings the visitor data of a new visitor. */
export function refusalResponse(playabilityStatus: JsonObject, incoming: Incoming, state: ServerState): JsonObject {
  const visitorData = state.visitors.issue(incoming, true);
  const response = { responseContext: responseContext(incoming.client, visitorData), playabilityStatus };
  return incoming.kind === 'reel' ? { playerResponse: response } : response;
}

/** WEB plays with a PO token and the timestamp of the current player script only; the metadata comes without them. */
function webRefusal(incoming: Incoming, tokens: ServerState['tokens']): JsonObject | undefined {
  if (incoming.client !== 'WEB') return undefined;
  if (!tokens.accepts(incoming)) return botCheck();
  const timestamp = at(incoming.body, 'playbackContext', 'contentPlaybackContext', 'signatureTimestamp');
  return Number(timestamp) === SIGNATURE_TIMESTAMP ? undefined : reload();
}

function playing({ id, tracks }: Video, client: Client): JsonObject {
  const listed = tracks.filter(({ webOnly }) => client === 'WEB' || !webOnly);
  // Without tracks the whole property is missing.
  return {
    streamingData: streamingData(id, client),
    ...(listed.length > 0 && { captions: captionsOf(id, listed, client) }),
  };
}

function shownTo(client: Client, video: Video): Video {
  return video.updateNoticeOn?.includes(client) ? { ...video, id: 'aQvGIIdgFDM' } : video;
}

/** WEB alone gets the exact dates. */
function detailsOf(channel: Channel, video: Video, client: Client): JsonObject {
  return { videoDetails: videoDetails(channel, video), ...(client === 'WEB' && { microformat: microformat(video) }) };
}

function captionsOf(videoId: string, tracks: readonly Track[], client: Client): JsonObject {
  // The original language is that of the recognised speech; the platform prefers the captions in that language.
  const spoken = tracks.find((track) => track.generated)?.languageCode;
  const first = tracks.findIndex((track) => track.languageCode === spoken);
  return {
    playerCaptionsTracklistRenderer: {
      captionTracks: tracks.map((track) => captionTrack(videoId, track, client)),
      audioTracks: [
        {
          captionTrackIndices: tracks.map((_, index) => index),
          defaultCaptionTrackIndex: Math.max(0, first),
          hasDefaultTrack: true,
          captionsInitialState: 'CAPTIONS_INITIAL_STATE_OFF_RECOMMENDED',
        },
      ],
      translationLanguages: [{ languageCode: 'fr', languageName: { runs: [{ text: 'French' }] } }],
      defaultAudioTrackIndex: 0,
    },
  };
}

function captionTrack(videoId: string, track: Track, client: Client): JsonObject {
  const text = track.generated ? `${track.languageName} (auto-generated)` : track.languageName;
  return {
    baseUrl: captionUrl(videoId, track, client, Date.now()),
    name: { runs: [{ text }] },
    vssId: `${track.generated ? 'a' : ''}.${track.languageCode}`,
    languageCode: track.languageCode,
    ...(track.generated && { kind: 'asr' }),
    ...(track.forced && { kind: 'frc' }),
    isTranslatable: true,
    trackName: '',
  };
}

function videoDetails(channel: Channel, video: Video): JsonObject {
  const thumbnails = [320, 1280].map((width) => ({
    url: `https://i.ytimg.com/vi/${video.id}/${width === 320 ? 'mqdefault' : 'hq720'}.jpg`,
    width,
    height: (width * 9) / 16,
  }));
  return {
    videoId: video.id,
    title: video.title,
    lengthSeconds: String(video.durationSeconds),
    ...(video.state === 'live' && { isLive: true, isLiveDvrEnabled: true, isLowLatencyLiveStream: true }),
    ...(video.state === 'upcoming' && { isUpcoming: true }),
    ...(video.justEnded && { isPostLiveDvr: true }),
    channelId: channel.id,
    shortDescription: video.description ?? channel.description,
    ...(video.tags && { keywords: video.tags }),
    thumbnail: { thumbnails },
    viewCount: String(video.viewCount),
    author: channel.name,
    isPrivate: false,
    isLiveContent: video.pastLive === true || video.state === 'live' || video.state === 'upcoming',
  };
}

function microformat(video: Video): JsonObject {
  // In the platform's time zone, California: `2026-10-31T12:00:00-08:00`.
  const published = new Date(video.publishedAt.getTime() - 8 * 3_600_000).toISOString().replace('.000Z', '-08:00');
  return {
    playerMicroformatRenderer: {
      publishDate: published,
      uploadDate: published,
      isShortsEligible: video.short === true,
      externalVideoId: video.id,
    },
  };
}

/** The part of a player response that the service excludes with `$fields`: 400 KB for WEB, less for the apps. */
function streamingData(videoId: string, client: Client): JsonObject {
  const signature = createHash('sha512').update(videoId).digest('hex').repeat(8);
  const url = `https://fake-youtube.googlevideo.com/videoplayback?id=${videoId}&ip=0.0.0.0&sig=${signature}`;
  const adaptiveFormats = Array.from({ length: client === 'WEB' ? 300 : 90 }, (_, index) => ({
    itag: 133 + index,
    url: `${url}&itag=${133 + index}`,
    mimeType: 'video/mp4; codecs="avc1.4d401f"',
  }));
  return { expiresInSeconds: '21540', adaptiveFormats };
}

/** The video as it is in the country of the caller's address. */
function withinCountry<T extends { video: Video }>(
  found: T | undefined,
  { egress }: Incoming,
  { settings }: ServerState,
) {
  if (found?.video.state !== 'country-blocked' || egress !== settings.countryOf) return found;
  return { ...found, video: { ...found.video, state: 'ok' as const } };
}
