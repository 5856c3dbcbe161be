const LINE_BREAKS = /[\t\n\v\f\r\u0085\u2028\u2029]+/g;
/** Control characters; U+FEFF, which readers of a file remove as a byte order mark. */
const INVALID = /[\p{Cc}\ufeff]/gu;

/**
 * The text of a segment or a title on one line: line breaks become spaces, control characters are removed, and half a
 * surrogate pair becomes U+FFFD. Nothing else changes, so that every script stays intact.
 */
export function lineText(text: string): string {
  return text.toWellFormed().replace(LINE_BREAKS, ' ').replace(INVALID, '').trim();
}

export const SENTENCE_END = /[.!?…。！？؟]["'”’)»」』]?$/u;

/** Scripts that are written without spaces between words. */
const UNSPACED_END = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\u3000-\u303f\uff00-\uffef]$/u;
const UNSPACED_START = /^[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\u3000-\u303f\uff00-\uffef]/u;

/** What joins the texts of two segments: a space, except between scripts that are written without. */
export function spaceBetween(before: string, after: string): string {
  return UNSPACED_END.test(before) && UNSPACED_START.test(after) ? '' : ' ';
}

/** A time as players show it: `m:ss`, or `h:mm:ss` from one hour on. */
export function clockTime(seconds: number): string {
  const whole = wholeSeconds(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const rest = String(whole % 60).padStart(2, '0');
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}

/** The value of `t` in the URL of a video. */
export function wholeSeconds(seconds: number): number {
  return Math.max(0, Math.floor(seconds));
}
