import type { Answer, Media } from './answer.js';
import { readHtmlKind } from './block-page.js';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Judges an exchange that came to its end. A refusal page is a block at any status. */
export function classify(status: number, headers: Headers, body: string, nowMs = Date.now()): Answer {
  const media = mediaOf(header(headers, 'content-type'), body);
  const retryAfterSeconds = readRetryAfter(header(headers, 'retry-after'), nowMs);
  if (status === 429) return { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds };
  if (media === 'html') {
    const page = readHtmlKind(body);
    if (page !== 'other') return { kind: 'blocked', reason: page, retryAfterSeconds };
  }
  return status >= 200 && status < 300 ? { kind: 'ok', media, body } : { kind: 'http-error', status };
}

/** Seconds until a retry is welcome, from either form of `Retry-After` (RFC 9110, 10.2.3); null when it says neither. */
export function readRetryAfter(value: string, nowMs: number): number | null {
  if (/^\d{1,9}$/.test(value)) return Number(value);
  // Date.parse takes almost anything for a date; an HTTP date begins with the name of a day.
  if (!/^[A-Z][a-z]{2,8}, /.test(value)) return null;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? null : Math.max(0, Math.ceil((atMs - nowMs) / 1000));
}

/** What a body is; its beginning outvotes its content type, because a refusal page can come with any. */
function mediaOf(contentType: string, body: string): Media {
  const beginning = body.slice(0, 256).trimStart().toLowerCase();
  if (beginning === '' && body.trim() === '') return 'empty';
  if (beginning.startsWith('<!doctype html') || beginning.startsWith('<html')) return 'html';
  if (contentType.includes('json')) return 'json';
  if (contentType.includes('xml')) return 'xml';
  return contentType.includes('html') ? 'html' : 'other';
}

function header(headers: Headers, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? (value[0] ?? '') : (value ?? '')).trim();
}
