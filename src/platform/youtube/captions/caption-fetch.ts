import type { YoutubeClient } from '../../../config/environment.js';
import { nextTurn } from '../../../domain/next-turn.js';
import { parseUrl } from '../../../domain/page-url.js';
import type { Segment } from '../../../domain/transcript.js';
import { addressKind } from '../egress/platform-url.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import type { FailedResponse, UpstreamResponse } from '../egress/upstream-response.js';
import type { InnertubeClient } from '../innertube/innertube-client.js';
import { UnreadableError } from '../response-parsing.js';
import type { PlayerTrack } from '../video/player-tracks.js';
import { readCaptions } from './caption-formats.js';

type CaptionText =
  /** `[]` is a track without text. */
  | { kind: 'text'; segments: Segment[] }
  /** 200 without content in each format: the platform requires a PO token, although the URL does not state it. */
  | { kind: 'withheld' }
  | FailedResponse;

/**
 * In the order in which they are requested. The second is the fallback: json3 has an object per word of generated captions,
 * so a call for 100 of them takes 1.8 times the CPU and 1.4 times the time with json3 first.
 */
const FORMATS = [null, 'json3'];

/** Maximum size of a caption body, in bytes after decompression. That of a ten-hour video has about 2 MB. */
const CAPTION_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Fetches the text of a track through the egress that received its URL, which is signed with the egress's address.
 *
 * @param poToken WEB's token for the video
 */
export async function fetchCaption(
  client: InnertubeClient,
  clientName: YoutubeClient,
  track: PlayerTrack,
  videoId: string,
  scope: RequestScope,
  poToken: string | null = null,
): Promise<CaptionText> {
  const results: CaptionText[] = [];
  for (const fmt of FORMATS) {
    const url = captionUrl(track.baseUrl, fmt, videoId);
    if (!url) return { kind: 'unreadable', expected: 'a caption URL of the platform for this video' };
    // As WEB's player sends its token.
    const proof = poToken === null ? {} : { pot: poToken, potc: '1', c: 'WEB' };
    for (const [name, value] of Object.entries(proof)) url.searchParams.set(name, value);
    const response = await client.fetchText('captions', clientName, url, scope, CAPTION_BYTES_MAX);
    await nextTurn();
    const result = readText(response);
    if (result.kind === 'text' && result.segments.length > 0) return result;
    results.push(result);
    // Another format helps when the body was unusable, not when the request failed.
    if (!['text', 'withheld', 'unreadable'].includes(result.kind)) break;
  }
  const first = (matches: (kind: CaptionText['kind']) => boolean) => results.find(({ kind }) => matches(kind));
  // A refusal takes precedence over a failure, and a failure over an empty track.
  return (
    first((kind) => kind === 'blocked') ??
    first((kind) => kind === 'withheld') ??
    first((kind) => kind !== 'text') ?? { kind: 'text', segments: [] }
  );
}

/** A track's URL in a format, or null when it must not be fetched for this video. */
export function captionUrl(baseUrl: string, fmt: string | null, videoId: string): URL | null {
  const url = parseUrl(baseUrl);
  if (!url || addressKind(url) !== 'allowed' || url.pathname !== '/api/timedtext') return null;
  const urlVideoId = url.searchParams.get('v');
  if (urlVideoId !== null && urlVideoId !== videoId) return null;
  // ANDROID's URLs contain fmt=srv3 [recorded]; a second fmt parameter would be ignored.
  if (fmt === null) url.searchParams.delete('fmt');
  else url.searchParams.set('fmt', fmt);
  // Adds positions to the text of each cue, according to the source of yt-dlp.
  url.searchParams.delete('xosf');
  return url;
}

function readText(response: UpstreamResponse): CaptionText {
  if (response.kind !== 'ok') return response;
  if (response.media === 'empty') return { kind: 'withheld' };
  if (response.media === 'html') return { kind: 'unreadable', expected: 'captions, not a page' };
  try {
    return { kind: 'text', segments: readCaptions(response.body) };
  } catch (error) {
    if (error instanceof UnreadableError) return { kind: 'unreadable', expected: error.expected };
    throw error;
  }
}
