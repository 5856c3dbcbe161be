/** How every API key begins. */
export const KEY_PREFIX = 'ctk_';
const DISPLAYED_LENGTH = 10;
const QUOTED_LENGTH_MAX = 100;
/** Case-insensitive, because the checksum allows the original case of a key to be recovered. */
const KEYS_IN_TEXT = new RegExp(`${KEY_PREFIX}[0-9A-Za-z]{${DISPLAYED_LENGTH - KEY_PREFIX.length + 1},}`, 'gi');

/** The first characters of a key, which identify it without revealing it. */
export function displayPrefix(key: string): string {
  return key.slice(0, DISPLAYED_LENGTH);
}

/** The secrets of webhooks, in base64 of either alphabet. */
const WEBHOOK_SECRETS = /(whsec_)[0-9A-Za-z+/_=-]+/gi;

/** Cuts everything in a text that looks like a key to its display prefix, and webhook secrets to theirs, for errors and logs. */
export function redactApiKeys(text: string): string {
  return text.replace(KEYS_IN_TEXT, (key) => `${displayPrefix(key)}…`).replace(WEBHOOK_SECRETS, '$1…');
}

/** A value of a caller in an error: shortened, and without keys. */
export function quoted(text: string): string {
  return JSON.stringify(redactApiKeys(text).slice(0, QUOTED_LENGTH_MAX));
}
