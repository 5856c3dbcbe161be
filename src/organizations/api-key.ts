import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { KEY_PREFIX } from '../domain/api-key-text.js';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_BYTES = 32;
/** The length of 256 bits in base 62. */
const RANDOM_LENGTH = 43;
/** The length of 32 bits in base 62. */
const CHECKSUM_LENGTH = 6;
const SHAPE = new RegExp(`^(${KEY_PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`);

/** Generates an API key: `ctk_`, 256 random bits, and a checksum that detects a mistyped key without a query. */
export function generateKey(): string {
  const body = KEY_PREFIX + base62(BigInt(`0x${randomBytes(RANDOM_BYTES).toString('hex')}`), RANDOM_LENGTH);
  return body + checksum(body);
}

/** Whether a text has the format and the checksum of a key. */
export function isWellFormedKey(text: string): boolean {
  const [, body, check] = SHAPE.exec(text) ?? [];
  return body !== undefined && checksum(body) === check;
}

/** The SHA-256 under which a key is stored. 256 random bits need no slow hash. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

/** Writes a number in base 62 with a fixed number of digits. */
export function base62(value: bigint, length: number): string {
  const digits: string[] = [];
  for (let rest = value; digits.length < length; rest /= 62n) digits.unshift(ALPHABET.charAt(Number(rest % 62n)));
  return digits.join('');
}
