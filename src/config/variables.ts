import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { parseUrl } from '../domain/references/page-url.js';
import { parseJson } from '../domain/parse-json.js';

/*
 * The kinds of variables. A message follows the name of the variable ("must be …") and says what is right. None repeats the
 * value, which can contain a password.
 */

const DIGITS = /^[0-9]{1,15}$/;

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER) {
  const error = `must be a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`}`;
  return z.string().regex(DIGITS, error).transform(Number).pipe(z.number().min(min, error).max(max, error));
}

export function oneOf<const T extends readonly string[]>(values: T) {
  return z.enum(values, `must be one of ${values.join(', ')}`);
}

export const flag = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true');

/** Values separated by commas. */
export function listOf<T extends z.ZodType<unknown, string>>(item: T) {
  return separated.pipe(z.array(item));
}

/** One or more of `values`, separated by commas, none of them twice. */
export function distinct<const T extends readonly string[]>(values: T) {
  const error = `must list one or more of ${values.join(', ')}, each once, separated by commas`;
  return separated.pipe(z.array(z.enum(values, error)).refine((items) => new Set(items).size === items.length, error));
}

const separated = z.string().transform((text) => text.split(',').map((item) => item.trim()));

/** @param example a URL with one of the protocols */
export function url(protocol: RegExp, example: string) {
  return z.url({ protocol, hostname: /./, error: `must be a URL such as ${example}` });
}

/** The URL of a proxy, in which `{session}` stands for a fresh value. */
export const proxyUrl = z
  .string()
  .refine(
    isProxyUrl,
    'must be the URL of a proxy such as http://user:password@host:3128, with special characters of the user and ' +
      'password percent-encoded (% is %25) and no other braces than those of {session}',
  );

function isProxyUrl(text: string): boolean {
  const replaced = text.replaceAll('{session}', 'session');
  const { protocol, hostname, username, password } = parseUrl(replaced) ?? {};
  try {
    decodeURIComponent(`${username}:${password}`);
  } catch {
    return false;
  }
  return /^https?:$/.test(protocol ?? '') && hostname !== '' && !/[{}]/.test(replaced);
}

const LOOPBACK_HOST = /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/;

/** Whether an identity provider may be asked at a URL: by https, or by http on this machine. */
export function isProviderUrl(text: string): boolean {
  const { protocol, hostname = '' } = parseUrl(text) ?? {};
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK_HOST.test(hostname));
}

/** The issuer as tokens name it: a URL with neither credentials nor a query. */
export const issuer = z
  .string()
  .refine(
    (text) => isProviderUrl(text) && !/[?#@\s]/.test(text),
    'must be the https:// URL of the issuer exactly as its tokens have it, such as https://id.example.com/realms/acme, or http:// on this machine',
  );

/** A claim and its value, at the last colon: the names of claims can be URLs. */
export const claimValue = z
  .string()
  .regex(/^[^\s].*:[^:]+$/, 'must be a claim and its value such as roles:transcripts-admin')
  .transform((text) => ({ claim: text.slice(0, text.lastIndexOf(':')), value: text.slice(text.lastIndexOf(':') + 1) }));

/** An origin that may call from a browser, or `*` for all. */
export const origin = z
  .string()
  .refine(
    (text) => text === '*' || (/^https?:/.test(text) && parseUrl(text)?.origin === text),
    'must be * or origins such as https://app.example.com, separated by commas',
  );

/** A token that cannot be guessed: long, and not one letter or word repeated. Random digits have eight different ones. */
export const secretToken = z
  .string()
  .refine(
    (token) => /^[\x21-\x7e]{32,}$/.test(token) && new Set(token).size >= 8,
    'must have at least 32 ASCII letters, digits and punctuation characters, no spaces and not a few repeated ones; ' +
      'generate one with: openssl rand -hex 32',
  );

const RANGE_NAMES = ['loopback', 'linklocal', 'uniquelocal'] as const;
const addressRange = z.union([z.enum(RANGE_NAMES), z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);
/** No deployment chains more than 10 proxies; with a larger number the service would trust forged addresses. */
const HOPS = /^0*(?:[0-9]|10)$/;

/** `off`, a number of proxies, or the addresses and ranges of proxies, which together have few of all addresses. */
export const trustedProxies = z
  .string()
  .refine(
    (text) => text === 'off' || HOPS.test(text) || areTrusted(text.split(',').map((item) => item.trim())),
    'must be off, the number of proxies in front of the service (1 for a single nginx, at most 10), or their addresses, ' +
      `ranges and the names ${RANGE_NAMES.join(', ')}, separated by commas; a range of all addresses would let any caller ` +
      'forge the address that it is counted by',
  );

function areTrusted(items: readonly string[]): boolean {
  if (!items.every((item) => addressRange.safeParse(item).success)) return false;
  return items.reduce((sum, item) => sum + shareOf(item), 0) <= TRUSTED_SHARE_MAX;
}

/** Far more than private networks and the ranges of a provider have. */
const TRUSTED_SHARE_MAX = 1 / 16;
const IPV4_BITS = 96;
/** IPv4 within IPv6: Express compares an IPv4 address with IPv6 ranges in this form. */
const IPV4 = ipaddr.IPv6.parse('::ffff:0:0');

/** The share of all IPv4 or IPv6 addresses that a range has. */
function shareOf(item: string): number {
  const [address = '', length] = item.split('/', 2);
  if (length === undefined) return 0;
  const isIPv6 = address.includes(':');
  const bits = Number(length) + (isIPv6 ? 0 : IPV4_BITS);
  const network = ipaddr.IPv6.parse(isIPv6 ? address : `::ffff:${address}`);
  const hasIPv4 = IPV4.match(network, Math.min(bits, IPV4_BITS));
  return 2 ** -(hasIPv4 ? Math.max(0, bits - IPV4_BITS) : bits);
}

const TEXT = 'must be a text of 1 to 300 printable ASCII characters';
/** The values are sent as headers. */
const text = z.string(TEXT).regex(/^[\x20-\x7e]{1,300}$/, TEXT);

const POSITIVE = 'must be a positive whole number';

/** What an override can set: fields of `context.client`, of which `userAgent` and `clientVersion` are headers too. */
const fields = {
  clientVersion: text.exactOptional(),
  userAgent: text.exactOptional(),
  osName: text.exactOptional(),
  osVersion: text.exactOptional(),
  deviceMake: text.exactOptional(),
  deviceModel: text.exactOptional(),
  androidSdkVersion: z.int(POSITIVE).positive(POSITIVE).exactOptional(),
};

const clientFields = z.strictObject(fields, `must be a JSON object of the fields ${Object.keys(fields).join(', ')}`);

export type ClientFields = z.output<typeof clientFields>;

/** Overrides of `clients` as JSON, such as `{ "VISIONOS": { "clientVersion": "1.04" } }`. */
export function clientOverrides<Client extends string>(clients: readonly Client[]) {
  const error = `must be a JSON object of the clients ${clients.join(', ')}`;
  return z
    .string()
    .transform(parseJson)
    .pipe(z.partialRecord(z.enum(clients), clientFields, error));
}
