import { InvalidRequestError } from '../errors.js';
import { parsePageUrl } from './page-url.js';

export const VIDEO_ID = /^[A-Za-z0-9_-]{11}$/;
/** Pages whose second segment is the ID of a video. */
const VIDEO_PAGES = new Set(['shorts', 'live', 'embed', 'v']);
/** Pages of the embedded player that have the form of an ID: a playlist, and whatever a channel streams now. */
const EMBEDDED_PAGES = new Set(['videoseries', 'live_stream']);

/** Of a list of videos, the faults that an error names. */
const FAULTS_NAMED_MAX = 100;

/**
 * Parses a reference to a video: its ID of 11 characters, or its URL (`/watch?v=`, `youtu.be/`, `/shorts/`, `/live/`,
 * `/embed/`, `/v/`) with any further parameters. Undefined for everything else. The text is never fetched, so the URL of
 * another site causes no request.
 *
 * @param text the reference, percent-decoded once as by a router; a URL may be encoded once more
 * @returns the ID of the video
 */
export function parseVideoReference(text: string): string | undefined {
  if (VIDEO_ID.test(text)) return text;
  const url = parsePageUrl(text);
  if (!url) return undefined;
  const [page = '', id = '', ...further] = url.segments;
  if (url.host === 'youtu.be') return url.segments.length === 1 && VIDEO_ID.test(page) ? page : undefined;
  if (page === 'watch') {
    const watched = url.parameters.get('v') ?? '';
    return url.segments.length === 1 && VIDEO_ID.test(watched) ? watched : undefined;
  }
  if (!VIDEO_PAGES.has(page) || further.length > 0 || EMBEDDED_PAGES.has(id)) return undefined;
  return VIDEO_ID.test(id) ? id : undefined;
}

/**
 * Parses the references of a list.
 *
 * @throws InvalidRequestError naming the positions of texts that are no references to a video
 */
export function parseVideoList(references: readonly string[]): string[] {
  const parsed = references.map((reference) => parseVideoReference(reference));
  const invalid = parsed.flatMap((id, index) => (id === undefined ? [`videos[${index}]`] : []));
  if (invalid.length > 0)
    throw new InvalidRequestError(
      invalid
        .slice(0, FAULTS_NAMED_MAX)
        .map((field) => ({ field, message: `${field} must be the ID or the URL of a video on youtube.com.` })),
    );
  return parsed.filter((id) => id !== undefined);
}
