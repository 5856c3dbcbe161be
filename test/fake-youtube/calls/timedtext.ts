import { createHash } from 'node:crypto';
import { json3, legacyXml, srv3 } from './caption-formats.js';
import type { Client, Track } from '../catalogue/model.js';
import type { Incoming } from '../incoming-request.js';
import { type FakeResponse, htmlNotFound, textResponse } from '../rendered-bodies.js';
import type { ServerState } from '../settings.js';

/** `GET /api/timedtext`: the text of a track; 200 without a byte when a PO token is needed and missing. */
export function timedtext(incoming: Incoming, { tokens, catalogue }: ServerState): FakeResponse {
  const query = incoming.url.searchParams;
  const videoId = query.get('v') ?? '';
  const found = catalogue.videoById(videoId);
  const generated = query.get('kind') === 'asr';
  const track = found?.video.tracks.find(
    ({ languageCode, generated: asr = false }) => languageCode === query.get('lang') && asr === generated,
  );
  if (!track || !incoming.client || !isSigned(query, Date.now())) return htmlNotFound();
  if (needsToken(track, incoming.client) && !tokens.accepts(incoming)) return emptyText();

  const format = query.get('fmt') ?? '';
  const key = `timedtext:${videoId}:${track.languageCode}:${generated}:${format}`;
  if (track.alwaysSrv3) return textResponse(200, 'text/xml; charset=UTF-8', () => srv3(track), key);
  if (format === 'json3') return textResponse(200, 'application/json; charset=UTF-8', () => json3(track), key);
  // The adapter never requests the other formats.
  if (format !== '') return htmlNotFound();
  return textResponse(200, 'text/xml; charset=UTF-8', () => legacyXml(track), key);
}

/** The response to a request without the PO token that it needs. */
function emptyText(): FakeResponse {
  return textResponse(200, 'text/html; charset=UTF-8', () => '');
}

const HOUR_SECONDS = 3_600;
const LIFETIME_HOURS = 7;

/** The parameters that the signature covers; language, kind and format may be changed. */
const SIGNED = ['ip', 'ipbits', 'expire', 'v', 'ei', 'caps', 'opi', 'xoaf'];

/**
 * The URL of a track as the platform issues it: on the platform's own host, signed, valid for seven hours, and
 * with the requesting client encoded in `ei`.
 */
export function captionUrl(videoId: string, track: Track, client: Client, nowMs: number): string {
  const query = new URLSearchParams({
    v: videoId,
    ei: Buffer.from(`${client}:${videoId}`).toString('base64url'),
    caps: 'asr',
    opi: '112496729',
    xoaf: '5',
    xowf: '1',
    hl: 'en',
    ip: '0.0.0.0',
    ipbits: '0',
    expire: String(expiry(nowMs)),
    sparams: SIGNED.join(','),
  });
  query.set('signature', signatureOf(query));
  query.set('key', 'yt8');
  if (announcesToken(track, client)) query.set('exp', 'xpe');
  if (track.generated) query.set('kind', 'asr');
  query.set('lang', track.languageCode);
  if (client === 'ANDROID' || client === 'ANDROID_REEL') query.set('fmt', 'srv3');
  // The platform does not encode these commas.
  return `https://www.youtube.com/api/timedtext?${query.toString().replaceAll('%2C', ',')}`;
}

/** Almost every track of the WEB client needs a token. */
export function needsToken(track: Track, client: Client): boolean {
  return client === 'WEB' || (track.tokenNeed?.clients.includes(client) ?? false);
}

function announcesToken(track: Track, client: Client): boolean {
  return needsToken(track, client) && (track.tokenNeed?.announced ?? true);
}

/** Whether a URL was issued here, its signed parameters are unchanged and it has not expired. */
function isSigned(query: URLSearchParams, nowMs: number): boolean {
  return query.get('signature') === signatureOf(query) && Number(query.get('expire')) * 1_000 > nowMs;
}

/** Rounded to the full hour, so that the responses of an hour are identical and can be cached. */
function expiry(nowMs: number): number {
  return (Math.floor(nowMs / 1_000 / HOUR_SECONDS) + LIFETIME_HOURS) * HOUR_SECONDS;
}

function signatureOf(query: URLSearchParams): string {
  const signed = SIGNED.map((name) => `${name}=${query.get(name) ?? ''}`).join('&');
  const digest = createHash('sha512').update(signed).digest('hex').toUpperCase();
  return `${digest.slice(0, 40)}.${digest.slice(40, 80)}`;
}
