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
