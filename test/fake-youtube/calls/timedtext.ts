import { type FakeResponse, htmlNotFound, textResponse } from '../fake-response.js';
import { json3 } from '../caption-formats/json3.js';
import { legacyXml } from '../caption-formats/legacy-xml.js';
import { srv3 } from '../caption-formats/srv3.js';
import { videoById } from '../catalogue/catalogue.js';
import type { Incoming } from '../incoming-request.js';
import type { ServerState } from '../server-state.js';
import { isSigned, needsToken } from './caption-url.js';

const XML = 'text/xml; charset=UTF-8';

/** `GET /api/timedtext`: the text of a track; 200 without a byte when a PO token is needed and missing. */
export function timedtext(incoming: Incoming, { tokens }: ServerState): FakeResponse {
  const query = incoming.url.searchParams;
  const videoId = query.get('v') ?? '';
  const found = videoById(videoId);
  const generated = query.get('kind') === 'asr';
  const track = found?.video.tracks.find(
    ({ languageCode, generated: asr = false }) => languageCode === query.get('lang') && asr === generated,
  );
  if (!track || !incoming.client || !isSigned(query, Date.now())) return htmlNotFound();
  if (needsToken(track, incoming.client) && !tokens.accepts(incoming)) return emptyText();

  const format = query.get('fmt') ?? '';
  const key = `timedtext:${videoId}:${track.languageCode}:${generated}:${format}`;
  if (format === 'json3') return textResponse(200, 'application/json; charset=UTF-8', () => json3(track), key);
  if (format === 'srv3') return textResponse(200, XML, () => srv3(track), key);
  return textResponse(200, XML, () => legacyXml(track), key);
}

/** The response to a request without the PO token that it needs. */
function emptyText(): FakeResponse {
  return textResponse(200, 'text/html; charset=UTF-8', () => '');
}
