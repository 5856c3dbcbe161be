import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PREFIX = 'ctk_';
const RANDOM_BYTES = 32;
/** Characters that 256 bits take at 62 values each. */
const RANDOM_LENGTH = 43;
/** Characters that 32 bits take at 62 values each. */
const CHECKSUM_LENGTH = 6;
const DISPLAYED_LENGTH = 10;
const SHAPE = new RegExp(`^(${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`);
/** Without case, because a key in the wrong case is found again by its checksum. */
const KEYS_IN_TEXT = new RegExp(`${PREFIX}[0-9A-Za-z]{${DISPLAYED_LENGTH - PREFIX.length + 1},}`, 'gi');

/** Makes a new API key: `ctk_`, 256 random bits, and a checksum by which a mistyped key is known without a query. */
export function generateKey(): string {
  const body = PREFIX + base62(BigInt(`0x${randomBytes(RANDOM_BYTES).toString('hex')}`), RANDOM_LENGTH);
  return body + checksum(body);
}

/** Whether a text has the shape and the checksum of a key. */
export function isWellFormedKey(text: string): boolean {
  const [, body, check] = SHAPE.exec(text) ?? [];
  return body !== undefined && checksum(body) === check;
}

/** What a key is stored as and looked up by: its SHA-256. 256 random bits need no slow hash. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** The start of a key, which tells people which key it is and gives nothing away. */
export function displayPrefix(key: string): string {
  return key.slice(0, DISPLAYED_LENGTH);
}

/** A text that may go into an error or a log: whatever in it looks like a key is cut to its display prefix. */
export function redactApiKeys(text: string): string {
  return text.replace(KEYS_IN_TEXT, (key) => `${displayPrefix(key)}…`);
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

function base62(value: bigint, length: number): string {
  const digits: string[] = [];
  for (let rest = value; digits.length < length; rest /= 62n) digits.unshift(ALPHABET.charAt(Number(rest % 62n)));
  return digits.join('');
}
