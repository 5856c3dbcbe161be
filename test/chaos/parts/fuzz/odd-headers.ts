import type { RandomSource } from '../../harness/random.js';

type Headers = [name: string, value: string][];

/** Headers of which one has one of these values. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  Accept: [
    'application/json',
    'application/x-ndjson',
    'application/x-ndjson;q=0.5, application/json',
    '*/*',
    'text/html',
    '',
    ';;;',
    'application/json;q=2',
    'application/X-NDJSON',
    'image/png',
    `${'a/b,'.repeat(300)}*/*`,
  ],
  'Accept-Encoding': ['gzip', 'gzip;q=0', 'br', '*', 'identity;q=0', 'gzip, deflate, br, zstd', ';;', ''],
  Expect: ['100-continue', '100-Continue', 'miracles', '', '200-ok'],
  Host: ['localhost', '169.254.169.254', 'a b', '', 'x'.repeat(3_000), '[::1]', '@', '..'],
  'X-Forwarded-For': ['unknown', '::1', '1.2.3.4, 5.6.7.8', ','.repeat(500), '\xe9', '-1'],
  Origin: ['null', 'https://app.example.com', 'https://app.example.com.evil.test'],
  Connection: ['close', 'keep-alive', 'Upgrade', 'X-Request-Id, Host', 'close, keep-alive', ''],
  'User-Agent': ['', '() { :;}; echo x', '${jndi:ldap://127.0.0.1/a}', 'x'.repeat(2_000)],
  'X-Request-Id': [
    'sane',
    'a'.repeat(128),
    'a'.repeat(129),
    '',
    'two words',
    '<script>',
    '../..',
    '{}',
    '%00',
    'id\tid',
    'a\'b"c',
    'x'.repeat(5_000),
  ],
};

/** Unusual to hostile headers with which a request is still one request. */
export function oddHeaders(random: RandomSource, canary: string, secrets: readonly string[]): Headers {
  const together: readonly Record<string, string>[] = [
    { 'X-Forwarded-Host': canary, 'X-Forwarded-Proto': 'gopher', Forwarded: `for=127.0.0.1;host=${canary}` },
    { 'X-HTTP-Method-Override': 'DELETE', 'X-Original-URL': '/admin', 'X-Rewrite-URL': '/admin' },
    { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' },
    { 'Content-Type': 'application/json', 'Content-Length': '0' },
    { ['__proto__']: 'x', constructor: 'y', toString: 'z', hasOwnProperty: '1' },
    { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'DELETE' },
    { Host: canary, 'X-Forwarded-For': canary, Origin: `http://${canary}` },
    { 'X-Request-Id': 'one', 'x-request-id': 'two' },
    { 'X-Request-Id': random.pick(secrets) },
    { [`X-${random.text(1 + random.below(300))}`]: random.text(random.below(6_000)) },
    Object.fromEntries(Array.from({ length: random.below(80) }, (_, index) => [`X-${index}`, String(index)])),
    { 'X-Odd': latin1(random.bytes(40)), 'X-Request-Id': latin1(random.bytes(8)) },
  ];
  return Array.from({ length: 1 + random.below(4) }, () => {
    if (random.often(0.4)) return Object.entries(random.pick(together));
    const [name, values] = random.pick(Object.entries(VALUES));
    return [[name, random.pick(values)] as [string, string]];
  }).flat();
}

/** Bytes that are allowed in a header but never sent by clients: everything except control characters. */
function latin1(bytes: Buffer): string {
  return Buffer.from(bytes.map((byte) => (byte < 32 || byte === 127 ? 0xa0 : byte))).toString('latin1');
}
