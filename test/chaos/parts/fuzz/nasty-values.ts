/** Values in JSON that are wrong or unusual almost everywhere. */
export const NASTY_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  2 ** 53 + 2,
  [],
  {},
  [[]],
  { $gt: '' },
  '',
  ' ',
  'ok',
  '0',
  'NaN',
  'a\u0000b',
  '\ud800',
  '😀',
  '<script>',
  "'; DROP TABLE jobs; --",
  '__proto__',
  'x'.repeat(300),
  'x'.repeat(20_000),
];

/** Bodies that are not JSON, or not one value of it. */
export const NASTY_BODIES: readonly string[] = [
  '',
  ' ',
  '\ufeff{}',
  '{"a":1}{"a":2}',
  'undefined',
  '{a:1}',
  '{"name":"a","name":"b","plan":"pro"}',
];

/** Values of parameters. */
export const NASTY_TEXTS: readonly string[] = [
  '',
  '0',
  '-1',
  '1.5',
  '1e1',
  '+1',
  ' 1',
  '1 ',
  '٣',
  '0x10',
  '１',
  '25',
  '500',
  '99999999999999999999',
  'null',
  'en',
  'en,de',
  'en,,de',
  ',',
  'EN',
  'en-GB',
  'x-'.repeat(40),
  'zz'.repeat(2_000),
  '\u0000',
  '%',
  '%zz',
  '🚢',
  '*',
  '../..',
];

/** Names of parameters and properties. */
export const NASTY_NAMES: readonly string[] = [
  'limit[]',
  'limit[a]',
  'Limit',
  'page',
  'cursor',
  '__proto__',
  'constructor',
  'toString',
  'a'.repeat(500),
  '%zz',
  '[]',
  '',
  'languages[]',
  'verify',
  'after',
  'limit%00',
];

/** Values of a header that a request line can carry. */
export const NASTY_HEADERS: readonly string[] = ['', '0', 'a b', 'x'.repeat(256), '\xe9', '"quoted"', '{}'];

/** Values of Content-Type besides `application/json`. */
export const CONTENT_TYPES: readonly string[] = [
  'text/plain',
  'application/json; charset=utf-16',
  'application/json;charset="utf-8"',
  'multipart/form-data',
  'application/x-www-form-urlencoded',
  'application/json, text/html',
  '',
  '/',
  'application/merge-patch+json',
];
