import type { RandomSource } from '../../harness/random.js';

type Headers = [name: string, value: string][];

const LOOPBACK = '127.0.0.1';

/** Unusual to hostile headers with which a request is still one request. */
export function oddHeaders(random: RandomSource, canary: string, secrets: readonly string[]): Headers {
  const draw: (() => Headers)[] = [
    () => [['Accept', random.pick(ACCEPTS)]],
    () => [
      [
        'Accept-Encoding',
        random.pick(['gzip', 'gzip;q=0', 'br', '*', 'identity;q=0', 'gzip, deflate, br, zstd', ';;', '']),
      ],
    ],
    () => [['Expect', random.pick(['100-continue', '100-Continue', 'miracles', '', '200-ok'])]],
    () => [['X-Request-Id', requestId(random, secrets)]],
    () => [
      ['X-Request-Id', 'one'],
      ['X-Request-Id', 'two'],
    ],
    () => [
      ['Host', random.pick([canary, 'localhost', '169.254.169.254', 'a b', '', 'x'.repeat(3_000), '[::1]', '@', '..'])],
    ],
    () => [
      ['X-Forwarded-Host', canary],
      ['X-Forwarded-Proto', 'gopher'],
      ['Forwarded', `for=${LOOPBACK};host=${canary}`],
    ],
    () => [
      ['X-Forwarded-For', random.pick([canary, 'unknown', '::1', '1.2.3.4, 5.6.7.8', ','.repeat(500), '\xe9', '-1'])],
    ],
    () => [
      ['X-HTTP-Method-Override', random.pick(['DELETE', 'POST'])],
      ['X-Original-URL', '/admin'],
      ['X-Rewrite-URL', '/admin'],
    ],
    () => [
      [
        'Origin',
        random.pick([`http://${canary}`, 'null', 'https://app.example.com', 'https://app.example.com.evil.test']),
      ],
    ],
    () => [
      ['Connection', random.pick(['close', 'keep-alive', 'Upgrade', 'X-Request-Id, Host', 'close, keep-alive', ''])],
    ],
    () => [
      ['Connection', 'Upgrade, HTTP2-Settings'],
      ['Upgrade', random.pick(['websocket', 'h2c', 'TLS/1.0'])],
      ['HTTP2-Settings', 'AAMAAABk'],
    ],
    () => [[`X-${random.text(1 + random.below(300))}`, random.text(random.below(6_000))]],
    () => Array.from({ length: random.below(80) }, (_, index): [string, string] => [`X-${index}`, String(index)]),
    () => [['X-Odd', latin1(random.bytes(40))]],
    () => [['User-Agent', random.pick(['', '() { :;}; echo x', '${jndi:ldap://127.0.0.1/a}', 'x'.repeat(2_000)])]],
    () => [
      ['Content-Type', random.pick(['application/json', 'x', ''])],
      ['Content-Length', '0'],
    ],
    () => [
      ['__proto__', 'x'],
      ['constructor', 'y'],
      ['toString', 'z'],
      ['hasOwnProperty', '1'],
    ],
    () => [
      ['Access-Control-Request-Method', 'DELETE'],
      ['Access-Control-Request-Headers', 'authorization'],
      ['Origin', 'https://app.example.com'],
    ],
  ];
  return Array.from({ length: 1 + random.below(4) }, () => random.pick(draw)()).flat();
}

const ACCEPTS = [
  ...['application/json', 'application/x-ndjson', 'application/x-ndjson;q=0.5, application/json', '*/*', 'text/html'],
  ...['', ';;;', 'application/json;q=2', 'application/X-NDJSON', 'image/png', `${'a/b,'.repeat(300)}*/*`],
];

function requestId(random: RandomSource, secrets: readonly string[]): string {
  return random.pick([
    ...[
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
    ],
    ...[latin1(random.bytes(8)), random.pick(secrets), 'x'.repeat(5_000)],
  ]);
}

/** Bytes that are allowed in a header but never sent by clients: everything except control characters. */
function latin1(bytes: Buffer): string {
  return Buffer.from(bytes.map((byte) => (byte < 32 || byte === 127 ? 0xa0 : byte))).toString('latin1');
}
