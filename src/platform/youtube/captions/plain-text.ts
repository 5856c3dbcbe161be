/** Entities that the platform writes into captions, and the two that people write into theirs most. */
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
 * Decodes entities once. A number that is no code point becomes U+FFFD; halves of a surrogate pair, which some encoders
 * write one by one, join again; an unknown name stays as it is.
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

/** Longest cue that is read, in UTF-16 code units before decoding; the captions of a ten-hour video have some 2 million. */
export const CUE_LENGTH_MAX = 256 * 1024;

const LINE_BREAK = /<br\s{0,9}\/?>/gi;
const SPACES = /[\t\n\v\f\r \u00a0]+/g;
const NEEDS_SPACES = /[\t\n\v\f\r\u00a0]| {2}/;
const VISIBLE = /[^\s\u200b-\u200f\u2060\ufeff]/;

/**
 * The words of a cue: markup removed, line breaks and runs of white space (not the ideographic space) made one space,
 * both ends trimmed. The formats of one track break and pad their lines differently; this makes them the same. Empty
 * for a cue in which nothing is visible, such as one that holds zero-width spaces only.
 */
export function plainText(text: string): string {
  const bare = text.includes('<') ? withoutMarkup(text.replace(LINE_BREAK, ' ')) : text;
  const words = (NEEDS_SPACES.test(bare) ? bare.replace(SPACES, ' ') : bare).trim();
  return VISIBLE.test(words) ? words : '';
}

/**
 * Removes the tags that captions are marked up with. Each `<` is looked at once and only as far as the next `<` or `>`,
 * so the time is linear in the length of the text, whatever an uploader wrote: a backtracking expression took minutes
 * for a megabyte of spaces in a tag.
 */
function withoutMarkup(text: string): string {
  let stored = '';
  let storedTo = 0;
  let end = -1;
  let open = text.indexOf('<');
  while (open !== -1) {
    const nextOpen = text.indexOf('<', open + 1);
    if (end < open) end = text.indexOf('>', open + 1);
    if (end === -1) break;
    if ((nextOpen === -1 || end < nextOpen) && isMarkup(text, open + 1, end)) {
      stored += text.slice(storedTo, open);
      storedTo = end + 1;
    }
    open = nextOpen;
  }
  return stored + text.slice(storedTo);
}

// Only what captions are marked up with, so that "<3" and "<laughs>" stay.
const MARKUP_NAMES = new Set(['i', 'b', 'u', 's', 'em', 'strong', 'span', 'font', 'ruby', 'rt', 'rp']);
const NAME = /[a-z]{1,6}/iy;
const SPACE = /\s*/y;
const ATTRIBUTE_NAME = /[\w-]+/y;
/** What follows the name of WebVTT's class tag, `<c.yellow.bg_blue>`. */
const CLASSES = /\.[\w.#-]+/y;

/** Whether the text between a `<` and its `>`, in which neither occurs, is a tag of markup. */
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

/** Where a match that begins at a position ends; the position itself when there is none. */
function endOf(expression: RegExp, text: string, from: number): number {
  expression.lastIndex = from;
  return expression.test(text) ? expression.lastIndex : from;
}
