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

const LINE_BREAK = /<br\s{0,9}\/?>/gi;
// Only what captions are marked up with, so that "<3" and "<laughs>" stay.
const MARKUP = /<\/?(?:i|b|u|s|em|strong|span|font|ruby|rt|rp)(?:\s+[\w-]+\s*=[^<>]*)?\s*\/?>|<\/?c(?:\.[\w.#-]+)?>/gi;
const SPACES = /[\t\n\v\f\r \u00a0]+/g;
const NEEDS_SPACES = /[\t\n\v\f\r\u00a0]| {2}/;
const VISIBLE = /[^\s\u200b-\u200f\u2060\ufeff]/;

/**
 * The words of a cue: markup removed, line breaks and runs of white space (not the ideographic space) made one space,
 * both ends trimmed. The formats of one track break and pad their lines differently; this makes them the same. Empty
 * for a cue in which nothing is visible, such as one that holds zero-width spaces only.
 */
export function plainText(text: string): string {
  const bare = text.includes('<') ? text.replace(LINE_BREAK, ' ').replace(MARKUP, '') : text;
  const words = (NEEDS_SPACES.test(bare) ? bare.replace(SPACES, ' ') : bare).trim();
  return VISIBLE.test(words) ? words : '';
}
