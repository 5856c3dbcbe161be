/** What an HTML answer is, where JSON, XML or a caption text was expected. */
export type HtmlKind = 'captcha' | 'consent' | 'other';

/** Both pages were seen to be below 10,000 characters; a larger body is a page of another kind. */
const LOOKED_AT_LENGTH_MAX = 262_144;

/**
 * Tells the platform's refusal pages by their markers (seen in 2025 and 2026): the form of the consent page, and the
 * captcha of the page that comes with 429, or the one of its older form. Never throws.
 */
export function readHtmlKind(body: string): HtmlKind {
  const head = body.slice(0, LOOKED_AT_LENGTH_MAX);
  if (/\bclass\s{0,9}=\s{0,9}["']g-recaptcha["']/.test(head)) return 'captcha';
  if (/\baction\s{0,9}=\s{0,9}["']https:\/\/consent\.(?:youtube|google)\.com\//.test(head)) return 'consent';
  return /\baction\s{0,9}=\s{0,9}["']\/(?:das_captcha|sorry\/)/.test(head) ? 'captcha' : 'other';
}
