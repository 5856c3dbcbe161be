import { createHash } from 'node:crypto';
import type { Client } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';

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
export function streamingData(videoId: string, client: Client): JsonObject {
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
    initRange: { start: '0', end: '741' },
    indexRange: { start: '742', end: '2197' },
    lastModified: '1780000000000000',
    contentLength: String(9_000_000 + index * 40_000),
    quality: 'medium',
    fps: 25,
    qualityLabel: '360p',
    projectionType: 'RECTANGULAR',
    averageBitrate: 110_000 + index * 6_000,
    approxDurationMs: '721040',
    signatureCipher: `s=${signature}${signature}&sp=sig&url=https%3A%2F%2Ffake-youtube.googlevideo.com%2Fvideoplayback%3Fitag%3D${index}`,
  };
}
