const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Writes a number in base 62 with a fixed number of digits. */
export function base62(value: bigint, digitsCount: number): string {
  const digits: string[] = [];
  for (let rest = value; digits.length < digitsCount; rest /= 62n) digits.unshift(ALPHABET.charAt(Number(rest % 62n)));
  return digits.join('');
}

/** Writes bytes in base 62, in as many digits as the largest bytes need. */
export function bytesToBase62(bytes: Buffer): string {
  return base62(BigInt(`0x${bytes.toString('hex')}`), Math.ceil((bytes.length * 8) / Math.log2(62)));
}

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

/** How the token in the address of a feed begins. */
export const FEED_TOKEN_PREFIX = 'ctf_';
const FEED_TOKENS = new RegExp(`(${FEED_TOKEN_PREFIX})[0-9A-Za-z]{20,}`, 'gi');

/** JSON Web Tokens, also cut off after a dot: base64url of `{"` or `{ `, then parts after dots. */
const TOKENS = /(?<![\w-])(ey[JA])[\w-]{8,}(?:\.[\w-]*)+/g;

/** Cuts everything in a text that looks like a key to its display prefix, and webhook secrets and all tokens to theirs, for errors and logs. */
export function redactApiKeys(text: string): string {
  const withoutKeys = text.replace(KEYS_IN_TEXT, (key) => `${displayPrefix(key)}…`);
  return [WEBHOOK_SECRETS, FEED_TOKENS, TOKENS].reduce((rest, secrets) => rest.replace(secrets, '$1…'), withoutKeys);
}

/** A value of a caller in an error: shortened, and without keys. */
export function quoted(text: string): string {
  return JSON.stringify(redactApiKeys(text).slice(0, QUOTED_LENGTH_MAX));
}

const WHOLE_KEY = `${KEY_PREFIX}[0-9A-Za-z]{49}`;
/** What is sent instead of a key, and what to do. The first one that applies is named. */
const MISTAKES: readonly (readonly [sent: RegExp, advice: string])[] = [
  [/^\W?Bearer\b/i, 'It begins with "Bearer", as in "Bearer Bearer ctk_…": enter only what follows that word.'],
  [/^key_[0-9a-f]+$/, 'This is the ID of a key. The key itself begins with "ctk_" and was shown when it was issued.'],
  [/^org_\w+$/, 'This is the ID of an organization. A key begins with "ctk_" and is issued for an organization.'],
  [
    /^(?:[$<{]|(?:API|MY|YOUR)[-_])/i,
    'This is a placeholder that was not replaced; a shell replaces $KEY in double quotes only.',
  ],
  [new RegExp(`^${KEY_PREFIX}\\w{0,6}\\W*$`), 'These are only the first characters of a key, as lists show it.'],
  [
    new RegExp(`.${WHOLE_KEY}|${WHOLE_KEY}[^]`),
    'Other characters precede or follow the key, such as quotes, spaces or a line break.',
  ],
];

const KINDS: readonly (readonly [sent: RegExp, kind: string])[] = [
  [new RegExp(`^${WHOLE_KEY}$`), 'an API key'],
  // Base64url of `{"` or of `{` and a space, and a dot.
  [/^ey[JA][\w-]*\./, 'an access token'],
];

/**
 * Why a credential is not accepted: it is of another kind than what is expected, or not copied exactly.
 *
 * @param expected with its article
 */
export function refusalOf(credential: string, expected: string): string {
  const [, kind] = KINDS.find(([sent]) => sent.test(credential)) ?? [];
  return kind === undefined || expected.includes(kind)
    ? `This is not ${expected}, or was not copied exactly.${mistakeIn(credential)}`
    : `This is ${kind}. Use ${expected} instead.`;
}

/** Names a common mistake in what was sent as a key or a token, as a sentence after another one, without repeating it. */
function mistakeIn(credential: string): string {
  const [, advice] = MISTAKES.find(([sent]) => sent.test(credential)) ?? [];
  return advice === undefined ? '' : ` ${advice}`;
}
