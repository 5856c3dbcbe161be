import { decodeHTMLStrict } from 'entities';
import type { YoutubeClient } from '../../../config/environment.js';
import { nextTurn } from '../../../domain/waiting.js';
import { parseUrl } from '../../../domain/references/page-url.js';
import { parseJson } from '../../../domain/parse-json.js';
import type { Segment } from '../../../domain/transcript.js';
import { addressKind } from '../egress/http-transport.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import type { FailedResponse, UpstreamResponse } from '../egress/upstream-response.js';
import type { InnertubeClient } from '../innertube/innertube-client.js';
import { asArray, asNumber, at, isObject, UnreadableError } from '../response-parsing.js';
import type { PlayerTrack } from './player-tracks.js';

type CaptionText =
  /** `[]` is a track without text. */
  | { kind: 'text'; segments: Segment[] }
  /** 200 without content in each format: the platform requires a PO token, although the URL does not state it. */
  | { kind: 'withheld' }
  | { kind: 'too-long' }
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
    if (error instanceof TooLongError) return { kind: 'too-long' };
    if (error instanceof UnreadableError) return { kind: 'unreadable', expected: error.expected };
    throw error;
  }
}

/**
 * Reads a caption document in whichever form it has: the platform may send another one than was requested. Cues without text
 * are skipped, so `[]` is a well-formed document without text.
 *
 * @throws UnreadableError for a body that is empty, truncated, too long or of another form
 */
export function readCaptions(body: string): Segment[] {
  // Also removes a byte order mark.
  const text = body.trim();
  const segments = text.startsWith('<') ? readXml(text) : readJson3(text);
  return segments.sort((one, other) => one.start - other.start);
}

/**
 * The longest text; what is done with one at a stretch takes up to about 50 ms. It is about twice that of the longest videos, whose
 * twelve hours of speech have 17,000 cues and 550,000 characters.
 */
export const CUES_MAX = 30_000;
export const CHARACTERS_MAX = 1_000_000;

/** Captions that roll up have a cue without words for each line. */
const EMPTY_CUES_MAX = 2 * CUES_MAX;

/** No other format or client helps. */
class TooLongError extends UnreadableError {
  constructor() {
    super(`captions of at most ${CUES_MAX} cues and ${CHARACTERS_MAX} characters`);
  }
}

/** What of a document was read, with its entities, which take the most of the time. */
class ReadLength {
  private cues = 0;
  private characters = 0;

  /** @param withWords the cues before this one that have words */
  add(content: string, withWords: number): void {
    this.characters += content.length;
    this.cues += 1;
    const empty = this.cues - 1 - withWords;
    if (withWords >= CUES_MAX || empty > EMPTY_CUES_MAX || this.characters > CHARACTERS_MAX) throw new TooLongError();
  }
}

/** The root of a document, after declarations and comments. */
const ROOT = /^(?:<[?!][^>]*>\s*)*<(transcript|timedtext)(?:\s[^>]*)?\/?>/;
const TIME = String.raw`(\d{1,15}(?:\.\d{1,15})?)`;
/** The times come first as a rule, where they are read with the cue; else they are among its other attributes. */
const CUE = new RegExp(`<(text|p)(?: (?:start|t)="${TIME}"(?: (?:dur|d)="${TIME}")?)?((?:\\s[^<>]*)?)>`, 'g');
const START = /\s(?:start|t)=["']([^"']*)/;
const DURATION = /\s(?:dur|d)=["']([^"']*)/;
/** By the name of a cue: another one in its text, or a section whose text would be lost as a tag. */
const NOT_IN_CUE: Readonly<Record<string, RegExp>> = { text: /<(?:text[\s>]|!\[CDATA\[)/, p: /<(?:p[\s>]|!\[CDATA\[)/ };
const TAG = /<[!/?a-z][^<>]*>/gi;

/**
 * Reads either XML form: the legacy `<transcript><text start dur>` in seconds, with entities that are escaped twice, or srv3,
 * `<timedtext><p t d>` in milliseconds, with an `<s>` for each word. A missing or invalid duration is 0.
 *
 * Reads cues instead of tags: a call reads the texts of a hundred videos, and a reader of every tag takes twice as long.
 */
function readXml(text: string): Segment[] {
  const [opening = '', root] = ROOT.exec(text) ?? [];
  if (root === undefined) throw new UnreadableError('a caption document');
  const isWhole = opening.endsWith('/>') ? text === opening : text.endsWith(`</${root}>`);
  if (!isWhole) throw new UnreadableError('a whole caption document');
  const unitMs = root === 'transcript' ? 1000 : 1;
  const segments: Segment[] = [];
  const length = new ReadLength();
  CUE.lastIndex = opening.length;
  for (let cue = CUE.exec(text); cue !== null; cue = CUE.exec(text)) {
    const { 1: name = '', 2: first, 3: second, 4: others = '' } = cue;
    if (others.endsWith('/')) continue;
    const end = text.indexOf(name === 'p' ? '</p>' : '</text>', CUE.lastIndex);
    if (end === -1) throw new UnreadableError('the end of a cue');
    const content = withoutTags(text.slice(CUE.lastIndex, end), name);
    length.add(content, segments.length);
    const words = plainText(decodeEntities(content));
    CUE.lastIndex = end;
    if (words === '') continue;
    const start = first === undefined ? asNumber(START.exec(others)?.[1]) : Number(first);
    if (start === null) throw new UnreadableError('the start of a cue');
    const duration = second === undefined ? (asNumber(DURATION.exec(others)?.[1]) ?? 0) : Number(second);
    segments.push(segmentOf(words, start * unitMs, duration * unitMs));
  }
  return segments;
}

function withoutTags(content: string, name: string): string {
  if (!content.includes('<')) return content;
  if (NOT_IN_CUE[name]?.test(content)) throw new UnreadableError('the end of a cue');
  return content.replace(LINE_BREAK, ' ').replace(TAG, '');
}

/**
 * Reads the json3 form. Events without `segs` are window definitions. An appended event (`aAppend: 1`, the line break of a
 * roll-up) has only white space and is skipped like every other cue without text; one with text is included. A missing time
 * is 0, which the format may omit, as it omits the events of a track without text.
 */
function readJson3(text: string): Segment[] {
  const document = parseJson(text);
  const events = at(document, 'events');
  if (events === undefined && at(document, 'wireMagic') !== undefined) return [];
  if (!Array.isArray(events)) throw new UnreadableError('a list of caption events');
  const segments: Segment[] = [];
  const length = new ReadLength();
  for (const event of asArray(events)) {
    if (!isObject(event)) throw new UnreadableError('a caption event');
    if (event['segs'] === undefined) continue;
    const content = textOf(event['segs']);
    length.add(content, segments.length);
    const words = plainText(decodeEntities(content));
    if (words === '') continue;
    const start = event['tStartMs'] === undefined ? 0 : asNumber(event['tStartMs']);
    if (start === null) throw new UnreadableError('a number in tStartMs');
    segments.push(segmentOf(words, start, asNumber(event['dDurationMs']) ?? 0));
  }
  return segments;
}

function textOf(segs: unknown): string {
  if (!Array.isArray(segs)) throw new UnreadableError('a list in segs');
  let text = '';
  for (const seg of asArray(segs)) {
    const part = at(seg, 'utf8');
    if (part !== undefined && typeof part !== 'string') throw new UnreadableError('a string in utf8');
    text += part ?? '';
  }
  return text;
}

/** A segment with times in seconds, rounded to milliseconds and at least 0. */
function segmentOf(text: string, startMs: number, durationMs: number): Segment {
  return { text, start: seconds(startMs), duration: seconds(durationMs) };
}

function seconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds)) / 1000;
}

/** Up to three times are reported (2026), and the XML escapes once more. */
const ESCAPED_TIMES_MAX = 4;
/** A half of a surrogate pair, which some encoders write as two entities. */
const HALF = /&#(?:5[5-7]\d{3}|x[dD][\da-fA-F]{3});/g;

/** Decodes entities however often they are escaped. An invalid code point becomes U+FFFD; an unknown name is not changed. */
export function decodeEntities(text: string): string {
  let decoded = text;
  for (let times = 0; times < ESCAPED_TIMES_MAX && decoded.includes('&'); times++) {
    const escaped = decoded;
    decoded = decodeHTMLStrict(escaped.replace(HALF, decodeHalf));
    if (decoded === escaped) break;
  }
  return decoded;
}

function decodeHalf(entity: string): string {
  return String.fromCharCode(Number(entity.slice(2, -1).replace('x', '0x')));
}

const LINE_BREAK = /<\/?(?:br|p|div)(?:\s+[\w-]+\s*=[^<>]*|\s*\/?)>/gi;
const NAMES = 'a|b|big|c|cite|code|del|em|font|i|ins|lang|mark|q|rp|rt|ruby|s|small|span|strike|strong|sub|sup|tt|u|v';
/**
 * Only the tags that captions use as markup, with WebVTT's classes (`<c.yellow.bg_blue>`), speakers (`<v Ann>`) and time
 * stamps: "<3" and "<laughs>" are text. The attributes are one part up to the end of the tag: with optional spaces after it,
 * the time would be quadratic.
 */
const MARKUP = new RegExp(
  [
    `</?(?:${NAMES})(?:\\.[\\w.#-]+)?(?:\\s+[\\w-]+\\s*=[^<>]*|\\s*/?)>`,
    String.raw`<(?:lang|v)(?:\.[\w.#-]+)?\s[^<>]*>`,
    String.raw`<(?:\d{2,4}:)?\d\d:\d\d\.\d{3}>`,
  ].join('|'),
  'gi',
);
const SPACES = /[\t\n\v\f\r \u00a0]+/g;
const NEEDS_SPACES = /[\t\n\v\f\r\u00a0]| {2}/;
/** Neither bidirectional marks, zero-width characters, the blank of Braille nor the fillers of Hangul. */
const VISIBLE = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]/u;

/**
 * The text of a cue: markup removed, line breaks and runs of white space (except the ideographic space) collapsed to one
 * space, trimmed. The formats of a track break and pad lines differently; this makes them equal. Empty for a cue without
 * visible characters.
 */
export function plainText(text: string): string {
  const bare = text.includes('<') ? text.replace(LINE_BREAK, ' ').replace(MARKUP, '') : text;
  const words = (NEEDS_SPACES.test(bare) ? bare.replace(SPACES, ' ') : bare).trim();
  return VISIBLE.test(words) ? words : '';
}
