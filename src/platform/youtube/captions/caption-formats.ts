import type { Segment } from '../../../domain/transcript.js';
import { asArray, asNumber, at, isObject, UnreadableError } from '../response-parsing.js';

/** The root of a document, after declarations and comments. */
const ROOT = /^\s*(?:<[?!][^>]*>\s*)*<transcript(?:\s[^>]*)?\/?>/;
const CUE = /<text((?:\s[^<>]*)?)>/g;
const START = /\sstart=["']([^"']*)/;
const DURATION = /\sdur=["']([^"']*)/;
/** Another cue in the text of a cue, or a section whose text would be lost as a tag. */
const NOT_IN_CUE = /<(?:text[\s>]|!\[CDATA\[)/;
const TAG = /<[^<>]*>/g;

/**
 * Reads a caption document in the legacy XML form: `<transcript><text start dur>`, with seconds and entities that are escaped
 * twice. A missing or invalid duration is 0. Cues without text are skipped, so `[]` is a well-formed document without text.
 *
 * Reads cues instead of tags: a call reads the texts of a hundred videos, and a reader of every tag takes twice as long.
 *
 * @throws UnreadableError for a body that is empty, truncated or of another form
 */
export function readCaptionXml(body: string): Segment[] {
  const text = body.trimEnd();
  const [opening] = ROOT.exec(text) ?? [];
  if (opening === undefined) throw new UnreadableError('a caption document');
  const isWhole = opening.endsWith('/>') ? text === opening : text.endsWith('</transcript>');
  if (!isWhole) throw new UnreadableError('a whole caption document');
  const segments: Segment[] = [];
  CUE.lastIndex = opening.length;
  for (let cue = CUE.exec(text); cue !== null; cue = CUE.exec(text)) {
    const [, attributes = ''] = cue;
    if (attributes.endsWith('/')) continue;
    const end = text.indexOf('</text>', CUE.lastIndex);
    if (end === -1) throw new UnreadableError('the end of a cue');
    const once = decodeEntities(withoutTags(text.slice(CUE.lastIndex, end)));
    CUE.lastIndex = end;
    const words = plainText(decodeEntities(once));
    if (words === '') continue;
    const start = asNumber(START.exec(attributes)?.[1]);
    if (start === null) throw new UnreadableError('the start of a cue');
    segments.push(segmentOf(words, start * 1000, (asNumber(DURATION.exec(attributes)?.[1]) ?? 0) * 1000));
  }
  return sortedByStart(segments);
}

function withoutTags(content: string): string {
  if (!content.includes('<')) return content;
  if (NOT_IN_CUE.test(content)) throw new UnreadableError('the end of a cue');
  return content.replace(LINE_BREAK, ' ').replace(TAG, '');
}

/**
 * Reads a caption document in the json3 form. Events without `segs` are window definitions. An appended event
 * (`aAppend: 1`, the line break of a roll-up) has only white space and is skipped like every other cue without text; one
 * with text is included. A missing time is 0, which the format may omit.
 *
 * @throws UnreadableError for a body that is empty, truncated or of another form
 */
export function readCaptionJson3(text: string): Segment[] {
  const events = at(parseJson(text), 'events');
  if (!Array.isArray(events)) throw new UnreadableError('a list of caption events');
  const segments: Segment[] = [];
  for (const event of asArray(events)) {
    if (!isObject(event)) throw new UnreadableError('a caption event');
    if (event['segs'] === undefined) continue;
    const words = readWords(event['segs']);
    if (words === '') continue;
    const start = event['tStartMs'] === undefined ? 0 : asNumber(event['tStartMs']);
    if (start === null) throw new UnreadableError('a number in tStartMs');
    segments.push(segmentOf(words, start, asNumber(event['dDurationMs']) ?? 0));
  }
  return sortedByStart(segments);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableError('JSON');
  }
}

function readWords(segs: unknown): string {
  if (!Array.isArray(segs)) throw new UnreadableError('a list in segs');
  let words = '';
  for (const seg of asArray(segs)) {
    const part = at(seg, 'utf8');
    if (part !== undefined && typeof part !== 'string') throw new UnreadableError('a string in utf8');
    words += part ?? '';
  }
  return plainText(words);
}

/** A segment with times in seconds, rounded to milliseconds and at least 0. */
function segmentOf(text: string, startMs: number, durationMs: number): Segment {
  return { text, start: seconds(startMs), duration: seconds(durationMs) };
}

function seconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds)) / 1000;
}

function sortedByStart(segments: Segment[]): Segment[] {
  const sorted = segments.every((segment, index) => index === 0 || (segments[index - 1]?.start ?? 0) <= segment.start);
  return sorted ? segments : segments.sort((one, other) => one.start - other.start);
}

/** Entities that the platform uses in captions, and the two that uploaders use most. */
const KNOWN: ReadonlyMap<string, string> = new Map([
  ['&amp;', '&'],
  ['&#39;', "'"],
  ['&quot;', '"'],
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&apos;', "'"],
  ['&nbsp;', '\u00a0'],
]);

const ENTITY = /&(?:#\d{1,10}|#[xX][0-9a-fA-F]{1,8}|amp|lt|gt|quot|apos|nbsp);/g;
const HEX = /^&#x/i;

/**
 * Decodes entities once. An invalid code point becomes U+FFFD; the halves of a surrogate pair, which some encoders write as
 * two entities, are joined; an unknown name is not changed.
 */
export function decodeEntities(text: string): string {
  return text.includes('&') ? text.replace(ENTITY, decodeEntity) : text;
}

function decodeEntity(entity: string): string {
  return (
    KNOWN.get(entity) ?? character(HEX.test(entity) ? parseInt(entity.slice(3, -1), 16) : Number(entity.slice(2, -1)))
  );
}

function character(codePoint: number): string {
  return codePoint > 0 && codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : '\ufffd';
}

const LINE_BREAK = /<br\s{0,9}\/?>/gi;
/**
 * Only the tags that captions use as markup, with WebVTT's class tag `<c.yellow.bg_blue>`: "<3" and "<laughs>" are text. The
 * attributes are one part up to the end of the tag: with optional spaces after it, the time would be quadratic.
 */
const MARKUP = /<\/?(?:i|b|u|s|em|strong|span|font|ruby|rt|rp)(?:\s+[\w-]+\s*=[^<>]*|\s*\/?)>|<\/?c(?:\.[\w.#-]+)?>/gi;
const SPACES = /[\t\n\v\f\r \u00a0]+/g;
const NEEDS_SPACES = /[\t\n\v\f\r\u00a0]| {2}/;
const VISIBLE = /[^\s\u200b-\u200f\u2060\ufeff]/;

/**
 * The text of a cue: markup removed, line breaks and runs of white space (except the ideographic space) collapsed to one
 * space, trimmed. The formats of a track break and pad lines differently; this makes them equal. Empty for a cue without
 * visible characters, such as one of zero-width spaces only.
 */
export function plainText(text: string): string {
  const bare = text.includes('<') ? text.replace(LINE_BREAK, ' ').replace(MARKUP, '') : text;
  const words = (NEEDS_SPACES.test(bare) ? bare.replace(SPACES, ' ') : bare).trim();
  return VISIBLE.test(words) ? words : '';
}
