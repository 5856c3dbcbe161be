import { isIP } from 'node:net';
import { parseUrl } from '../domain/parse-url.js';

/**
 * Parses the text of an environment variable.
 *
 * @throws InvalidValueError
 */
export type Parser<T> = (text: string) => T;

/** The message follows the name of the variable ("must be …") and does not repeat the value. */
export class InvalidValueError extends Error {}

/** Several faults of one structured value, each like the message of an `InvalidValueError`. */
export class InvalidFieldsError extends Error {
  constructor(readonly faults: readonly string[]) {
    super(faults.join('; '));
    this.name = 'InvalidFieldsError';
  }
}

/** A whole number in decimal digits, undefined for anything else; `Number` also accepts "1e3", " 5" and "0x10". */
export function parseWholeNumber(text: string): number | undefined {
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): Parser<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
  return (text) => {
    const number = parseWholeNumber(text);
    if (number === undefined || number < min || number > max) {
      throw new InvalidValueError(`must be a whole number ${range}`);
    }
    return number;
  };
}

export function anyText(text: string): string {
  return text;
}

export function matching(pattern: RegExp, description: string): Parser<string> {
  return (text) => {
    if (!pattern.test(text)) throw new InvalidValueError(`must be ${description}`);
    return text;
  };
}

export function oneOf<T extends string>(values: readonly T[]): Parser<T> {
  const choice = values.length === 2 ? values.join(' or ') : `one of ${values.join(', ')}`;
  return (text) => {
    const value = values.find((candidate) => candidate === text);
    if (value === undefined) throw new InvalidValueError(`must be ${choice}`);
    return value;
  };
}

export function flag(text: string): boolean {
  if (text !== 'true' && text !== 'false') throw new InvalidValueError('must be true or false');
  return text === 'true';
}

/** Values separated by commas. */
export function listOf<T>(parse: Parser<T>): Parser<T[]> {
  return (text) => text.split(',').map((item) => parse(item.trim()));
}

/** One or more of `values`, separated by commas, none of them twice. */
export function distinct<T extends string>(values: readonly T[]): Parser<T[]> {
  return (text) => {
    const items = text.split(',').map((item) => item.trim());
    const list = items.flatMap((item) => values.filter((value) => value === item));
    if (list.length !== items.length || new Set(list).size !== list.length) {
      throw new InvalidValueError(`must list one or more of ${values.join(', ')}, each once, separated by commas`);
    }
    return list;
  };
}

/** @param protocols e.g. `https:` */
export function url(...protocols: string[]): Parser<string> {
  const starts = protocols.map((protocol) => `${protocol}//`).join(' or ');
  return (text) => {
    const parsed = parseUrl(text);
    if (!parsed || !protocols.includes(parsed.protocol) || parsed.hostname === '') {
      throw new InvalidValueError(`must be a URL that starts with ${starts}`);
    }
    return text;
  };
}

const parseProxyUrl = url('http:', 'https:', 'socks5:');

/** The URL of a proxy, in which `{session}` stands for a fresh value. */
export function proxyUrl(text: string): string {
  const replaced = text.replaceAll('{session}', 'session');
  if (/[{}]/.test(replaced)) throw new InvalidValueError('must contain no other braces than those of {session}');
  parseProxyUrl(replaced);
  const { username, password } = new URL(replaced);
  if (!isPercentEncoded(username) || !isPercentEncoded(password)) {
    throw new InvalidValueError('must percent-encode special characters in the user name and the password (% is %25)');
  }
  return text;
}

function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** An origin that may call from a browser, e.g. `https://app.example.com`, or `*` for all. */
export function origin(text: string): string {
  const isOrigin = /^https?:/.test(text) && parseUrl(text)?.origin === text;
  if (text !== '*' && !isOrigin) {
    throw new InvalidValueError('must be * or origins such as https://app.example.com, separated by commas');
  }
  return text;
}

const TOKEN_LENGTH_MIN = 32;
/** 32 random hexadecimal digits have fewer in one of thirty million tokens. */
const TOKEN_DISTINCT_MIN = 8;
const GENERATE_TOKEN = 'generate one with: openssl rand -hex 32';

/** A token that cannot be guessed: long, and neither a repeated text nor a run of neighbouring characters. */
export function secretToken(text: string): string {
  if (text.length < TOKEN_LENGTH_MIN || !/^[\x21-\x7e]+$/.test(text)) {
    throw new InvalidValueError(
      `must have at least ${TOKEN_LENGTH_MIN} ASCII letters, digits and punctuation characters, no spaces; ${GENERATE_TOKEN}`,
    );
  }
  if (isGuessable(text)) {
    throw new InvalidValueError(`must not be a repeated or sequential text; ${GENERATE_TOKEN}`);
  }
  return text;
}

function isGuessable(token: string): boolean {
  if (new Set(token).size < TOKEN_DISTINCT_MIN) return true;
  const codes = Array.from(token, (character) => character.charCodeAt(0));
  const sequential = codes.filter((code, index) => Math.abs(code - (codes[index + 1] ?? 0)) <= 1);
  const periods = Array.from({ length: Math.floor(codes.length / 2) }, (_, index) => index + 1);
  const repeats = periods.some((period) =>
    codes.every((code, index) => index < period || code === codes[index - period]),
  );
  return repeats || sequential.length > (codes.length * 2) / 3;
}

/** No deployment chains more proxies; with a larger number the service would trust forged addresses. */
const HOPS_MAX = 10;
const RANGE_NAMES = ['loopback', 'linklocal', 'uniquelocal'];

/** `off`, a number of proxies, or the addresses and ranges of proxies. */
export function trustedProxies(text: string): string {
  const valid = /^[0-9]+$/.test(text)
    ? Number(text) <= HOPS_MAX
    : text === 'off' || text.split(',').every((range) => isRange(range.trim()));
  if (valid) return text;
  if (text === 'on' || /\/0+(?:\s*,|\s*$)/.test(text)) {
    throw new InvalidValueError(
      'must not trust every address, because any caller could then forge the address that it is counted by: set the number ' +
        'of proxies in front of the service (1 for a single nginx), or their addresses or ranges',
    );
  }
  throw new InvalidValueError(
    `must be off, the number of proxies in front of the service (at most ${HOPS_MAX}), or their addresses, ranges and the ` +
      `names ${RANGE_NAMES.join(', ')}, separated by commas`,
  );
}

function isRange(range: string): boolean {
  if (RANGE_NAMES.includes(range)) return true;
  const [address = '', bits, ...rest] = range.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  // A range of 0 bits is every address.
  return /^[0-9]{1,3}$/.test(bits) && Number(bits) > 0 && Number(bits) <= (version === 4 ? 32 : 128);
}
