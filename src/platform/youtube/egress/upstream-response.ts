import { parseUrl } from '../../../domain/references/page-url.js';
import { parseJson } from '../../../domain/parse-json.js';
import { addressKind, YOUTUBE_ORIGIN } from './http-transport.js';

/** Why the platform refuses the caller rather than the requested resource. */
type BlockReason =
  | 'too-many-requests'
  | 'captcha'
  | 'consent'
  /** Google's page about automated queries from this address. */
  | 'automated-queries'
  /** 403 to a request for a video or list. */
  | 'forbidden'
  | 'empty-body'
  /** Not sent: the egress was blocked while the request was queued. */
  | 'exit-shut';

/** Why a request has no readable response. */
export type FailedResponse =
  | { kind: 'blocked'; reason: BlockReason; retryAfterSeconds: number | null }
  /** Not sent: the pace of the egress cannot serve it before the deadline of its call. */
  | { kind: 'busy'; retryAfterSeconds: number }
  /** Another status than 2xx. */
  | { kind: 'http-error'; status: number; media: Media }
  | { kind: 'timeout' }
  | { kind: 'network'; cause: unknown }
  /** A page that is none of the platform's refusals where JSON or a text was requested: a proxy or a portal answered. */
  | { kind: 'foreign-page' }
  /** The response is not what was requested. */
  | { kind: 'unreadable'; expected: string };

export type NotSent = Extract<FailedResponse, { kind: 'busy' | 'blocked' }>;

export type Media = 'json' | 'xml' | 'html' | 'other' | 'empty';

interface ReadableResponse {
  kind: 'ok';
  media: Media;
  body: string;
  /** What the body is parsed to, in the response to a POST. */
  json?: unknown;
}

/** The result of one request: a 2xx response with its text, or why there is none. */
export type UpstreamResponse = ReadableResponse | FailedResponse;

/** The label of a response for logs and metrics, from a small set; it never contains text from the platform. */
export function labelOf(response: UpstreamResponse): string {
  // A caption URL refuses with an empty body, so it has its own label.
  if (response.kind === 'ok') return response.media === 'empty' ? 'empty' : 'ok';
  if (response.kind === 'blocked') return `blocked:${response.reason}`;
  if (response.kind === 'http-error') return `http-${Math.floor(response.status / 100)}xx`;
  return response.kind === 'foreign-page' ? 'unreadable' : response.kind;
}

/** Whether the address and its kind of request are refused for certain: the platform's pages and 429 say so, or a pause that followed. */
export function isHardRefusal(response: UpstreamResponse): boolean {
  return response.kind === 'blocked' && HARD_REASONS.has(response.reason);
}

const HARD_REASONS: ReadonlySet<BlockReason> = new Set([
  'too-many-requests',
  'captcha',
  'consent',
  'automated-queries',
  'exit-shut',
]);

/** What a caller reads when no response of the platform arrived. */
export const UNREACHED = 'YouTube could not be reached. Retry later.';

/** Whether no response of the platform arrived: another egress may be reached. */
export function isUnreached(response: { kind: string; media?: Media }): boolean {
  const { kind, media } = response;
  return (
    kind === 'network' || kind === 'timeout' || kind === 'foreign-page' || (kind === 'http-error' && media === 'html')
  );
}

/** Whether the platform answered with a JSON error. An HTML page with these statuses comes from a gateway or another server. */
export function isJsonError(
  response: { kind: string; status?: number; media?: Media },
  ...statuses: number[]
): boolean {
  return response.kind === 'http-error' && response.media === 'json' && statuses.includes(response.status ?? 0);
}

/** Parses a response to a POST, which is JSON. */
export function withJson(response: UpstreamResponse): UpstreamResponse {
  if (response.kind !== 'ok') return response;
  // A JSON response is never empty: an empty one is a refusal, like the empty body of a caption URL.
  if (response.media === 'empty') return { kind: 'blocked', reason: 'empty-body', retryAfterSeconds: null };
  if (response.media === 'html') return { kind: 'foreign-page' };
  if (!isNestedWithin(response.body, NESTING_MAX))
    return { kind: 'unreadable', expected: `JSON of at most ${NESTING_MAX} levels` };
  const json = parseJson(response.body);
  return json === undefined ? { kind: 'unreadable', expected: 'whole JSON' } : { ...response, json };
}

/** Recorded responses have up to 40 levels. Parsing millions takes seconds of the event loop. */
const NESTING_MAX = 200;

function isNestedWithin(json: string, levelsMax: number): boolean {
  let levels = 0;
  let inString = false;
  for (let index = 0; index < json.length; index += 1) {
    const code = json.charCodeAt(index);
    if (code === QUOTE) inString = !inString;
    else if (inString) {
      if (code === BACKSLASH) index += 1;
    } else if ((code | CASE_BIT) === OPENING) {
      levels += 1;
      if (levels > levelsMax) return false;
    } else if ((code | CASE_BIT) === CLOSING) levels -= 1;
  }
  return true;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
/** `[` and `{` differ in one bit, and so do `]` and `}`. */
const [CASE_BIT, OPENING, CLOSING] = [0x20, 0x7b, 0x7d];

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** The kinds of request of which a 403 says something about the channel or page: a video or list that is not public has a 200. */
const PAGES: ReadonlySet<string> = new Set(['feed', 'player-script']);

/**
 * Classifies a complete response. A refusal page is a block at any status.
 *
 * @param kind the kind of the request, as in `PendingRequest`
 */
export function classifyResponse(
  status: number,
  headers: Headers,
  body: string,
  kind = '',
  nowMs = Date.now(),
): UpstreamResponse {
  const media = mediaOf(header(headers, 'content-type'), body);
  const retryAfterSeconds = readRetryAfter(header(headers, 'retry-after'), nowMs);
  if (status === 429) return { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds };
  // Redirects are not followed: the platform redirects to its refusal pages only.
  const target = parseUrl(header(headers, 'location'), YOUTUBE_ORIGIN);
  const targetKind = target ? addressKind(target) : 'foreign';
  if (targetKind === 'captcha' || targetKind === 'consent')
    return { kind: 'blocked', reason: targetKind, retryAfterSeconds };
  const page = media === 'html' ? readHtmlKind(body) : 'other';
  if (page !== 'other') return { kind: 'blocked', reason: page, retryAfterSeconds };
  if (status === 403 && !PAGES.has(kind)) {
    return { kind: 'blocked', reason: 'forbidden', retryAfterSeconds };
  }
  return status >= 200 && status < 300 ? { kind: 'ok', media, body } : { kind: 'http-error', status, media };
}

const RETRY_AFTER_MAX_SECONDS = 3_600;

/**
 * Seconds from either form of `Retry-After` (RFC 9110, 10.2.3), from 1 to 3,600: 0 would end a pause at once, and the end of
 * a longer one is found out by a probe. Null for any other value.
 */
export function readRetryAfter(value: string, nowMs: number): number | null {
  // Date.parse accepts almost any text; an HTTP date starts with the name of a day.
  const atMs = /^[A-Z][a-z]{2,8}, /.test(value) ? Date.parse(value) : Number.NaN;
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : Math.ceil((atMs - nowMs) / 1000);
  return Number.isNaN(seconds) ? null : Math.min(RETRY_AFTER_MAX_SECONDS, Math.max(1, seconds));
}

/** The type of a body. Its start takes precedence over its content type, because a refusal page can have any. */
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

/** The refusal pages had fewer than 10,000 characters when seen; markers beyond this length are not searched. */
const SEARCHED_LENGTH_MAX = 262_144;

/**
 * Recognizes the platform's refusal pages by their markers (seen in 2025 and 2026): the form of the consent page, and the
 * captcha of the page that comes with 429, or the one of its older form. Google's "We're sorry..." page without a captcha
 * (reported at 200, 403 and 503) is recognized by its text. Never throws.
 */
export function readHtmlKind(body: string): BlockReason | 'other' {
  const head = body.slice(0, SEARCHED_LENGTH_MAX);
  if (/\bclass\s{0,9}=\s{0,9}["']g-recaptcha["']/.test(head)) return 'captcha';
  if (/\baction\s{0,9}=\s{0,9}["']https:\/\/consent\.(?:youtube|google)\.com\//.test(head)) return 'consent';
  if (/\baction\s{0,9}=\s{0,9}["']\/(?:das_captcha|sorry\/)/.test(head)) return 'captcha';
  return /\bautomated queries\b|\bunusual traffic from your\b/.test(head) ? 'automated-queries' : 'other';
}
