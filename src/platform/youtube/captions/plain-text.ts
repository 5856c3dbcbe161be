import { UnreadableError } from '../response-parsing.js';

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

/** Maximum length of a cue, in UTF-16 code units before decoding; all captions of a ten-hour video have about 2 million. */
export const CUE_LENGTH_MAX = 256 * 1024;

/** @throws UnreadableError for a cue that is longer than any real one */
export function checkCueLength(words: string): string {
  if (words.length > CUE_LENGTH_MAX) throw new UnreadableError(`a cue of at most ${CUE_LENGTH_MAX} characters`);
  return words;
}

const LINE_BREAK = /<br\s{0,9}\/?>/gi;
const SPACES = /[\t\n\v\f\r \u00a0]+/g;
const NEEDS_SPACES = /[\t\n\v\f\r\u00a0]| {2}/;
const VISIBLE = /[^\s\u200b-\u200f\u2060\ufeff]/;

/**
 * The text of a cue: markup removed, line breaks and runs of white space (except the ideographic space) collapsed to one
 * space, trimmed. The formats of a track break and pad lines differently; this makes them equal. Empty for a cue without
 * visible characters, such as one of zero-width spaces only.
 */
export function plainText(text: string): string {
  const bare = text.includes('<') ? withoutMarkup(text.replace(LINE_BREAK, ' ')) : text;
  const words = (NEEDS_SPACES.test(bare) ? bare.replace(SPACES, ' ') : bare).trim();
  return VISIBLE.test(words) ? words : '';
}

/**
 * Removes markup tags. Each `<` is examined once and only up to the next `<` or `>`, so the time is linear in the length of
 * any text: a backtracking expression took minutes for a megabyte of spaces in a tag.
 */
function withoutMarkup(text: string): string {
  let result = '';
  let copiedTo = 0;
  let end = -1;
  let open = text.indexOf('<');
  while (open !== -1) {
    const nextOpen = text.indexOf('<', open + 1);
    if (end < open) end = text.indexOf('>', open + 1);
    if (end === -1) break;
    if ((nextOpen === -1 || end < nextOpen) && isMarkup(text, open + 1, end)) {
      result += text.slice(copiedTo, open);
      copiedTo = end + 1;
    }
    open = nextOpen;
  }
  return result + text.slice(copiedTo);
}

// Only the tags that captions use as markup: "<3" and "<laughs>" are text.
const MARKUP_NAMES = new Set(['i', 'b', 'u', 's', 'em', 'strong', 'span', 'font', 'ruby', 'rt', 'rp']);
const NAME = /[a-z]{1,6}/iy;
const SPACE = /\s*/y;
const ATTRIBUTE_NAME = /[\w-]+/y;
/** The classes after the name of WebVTT's class tag, `<c.yellow.bg_blue>`. */
const CLASSES = /\.[\w.#-]+/y;

/** Whether the text between `<` and `>`, which contains neither, is a markup tag. */
function isMarkup(text: string, from: number, to: number): boolean {
  const nameFrom = text.startsWith('/', from) ? from + 1 : from;
  const nameTo = endOf(NAME, text, nameFrom);
  const name = text.slice(nameFrom, nameTo).toLowerCase();
  if (name === 'c') return nameTo === to || endOf(CLASSES, text, nameTo) === to;
  if (!MARKUP_NAMES.has(name)) return false;
  const spaceTo = endOf(SPACE, text, nameTo);
  if (spaceTo === to || (spaceTo === to - 1 && text.startsWith('/', spaceTo))) return true;
  const attributeTo = endOf(ATTRIBUTE_NAME, text, spaceTo);
  return spaceTo > nameTo && attributeTo > spaceTo && text.startsWith('=', endOf(SPACE, text, attributeTo));
}

/** The end of a match at a position; the position itself when there is none. */
function endOf(expression: RegExp, text: string, from: number): number {
  expression.lastIndex = from;
  return expression.test(text) ? expression.lastIndex : from;
}
