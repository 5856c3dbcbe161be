import type { Chance } from '../../harness/random.js';

type Headers = [name: string, value: string][];

const LOOPBACK = '127.0.0.1';

/** Headers that a request may carry, from unusual to hostile; with all of them it is still one request. */
export function oddHeaders(chance: Chance, canary: string, secrets: readonly string[]): Headers {
  const draw: (() => Headers)[] = [
    () => [['Accept', chance.pick(ACCEPTS)]],
    () => [
      [
        'Accept-Encoding',
        chance.pick(['gzip', 'gzip;q=0', 'br', '*', 'identity;q=0', 'gzip, deflate, br, zstd', ';;', '']),
      ],
    ],
    () => [
      ['Range', chance.pick(['bytes=0-0', 'bytes=5-1', 'bytes=-1', 'bytes=0-,0-,0-', 'lines=1-2', 'bytes=99999999-'])],
    ],
    () => [['If-None-Match', chance.pick(['*', '"x"', 'W/"x"', '', '"x", "y"', '"'])]],
    () => [['If-Modified-Since', chance.pick(['Sat, 21 Nov 2099 00:00:00 GMT', 'never', '0'])]],
    () => [
      ['If-Match', chance.pick(['*', '"x"'])],
      ['If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
    ],
    () => [
      ['If-Range', '"x"'],
      ['Range', 'bytes=0-3'],
    ],
    () => [['Expect', chance.pick(['100-continue', '100-Continue', 'miracles', '', '200-ok'])]],
    () => [['X-Request-Id', requestId(chance, secrets)]],
    () => [
      ['X-Request-Id', 'one'],
      ['X-Request-Id', 'two'],
    ],
    () => [
      ['Host', chance.pick([canary, 'localhost', '169.254.169.254', 'a b', '', 'x'.repeat(3_000), '[::1]', '@', '..'])],
    ],
    () => [
      ['X-Forwarded-Host', canary],
      ['X-Forwarded-Proto', 'gopher'],
      ['Forwarded', `for=${LOOPBACK};host=${canary}`],
    ],
    () => [
      ['X-Forwarded-For', chance.pick([canary, 'unknown', '::1', '1.2.3.4, 5.6.7.8', ','.repeat(500), '😀', '-1'])],
    ],
    () => [
      ['X-HTTP-Method-Override', chance.pick(['DELETE', 'POST'])],
      ['X-Original-URL', '/admin'],
      ['X-Rewrite-URL', '/admin'],
    ],
    () => [
      [
        'Origin',
        chance.pick([`http://${canary}`, 'null', 'https://app.example.com', 'https://app.example.com.evil.test']),
      ],
    ],
    () => [
      ['Referer', `http://${canary}/`],
      ['Via', '1.1 x'],
      ['Max-Forwards', '0'],
    ],
    () => [
      ['Connection', chance.pick(['close', 'keep-alive', 'Upgrade', 'X-Request-Id, Host', 'close, keep-alive', ''])],
    ],
    () => [
      ['Connection', 'Upgrade, HTTP2-Settings'],
      ['Upgrade', chance.pick(['websocket', 'h2c', 'TLS/1.0'])],
      ['HTTP2-Settings', 'AAMAAABk'],
    ],
    () => [
      ['Keep-Alive', 'timeout=99999, max=0'],
      ['TE', 'trailers, chunked'],
      ['Trailer', 'X-Request-Id'],
    ],
    () => [['Cookie', chance.pick(['a=b', '__proto__=1', `s=${'x'.repeat(4_000)}`])]],
    () => [
      ['Cache-Control', chance.pick(['no-cache', 'max-age=0', 'only-if-cached'])],
      ['Pragma', 'no-cache'],
    ],
    () => [[`X-${chance.text(1 + chance.below(300))}`, chance.text(chance.below(6_000))]],
    () => Array.from({ length: chance.below(80) }, (_, index): [string, string] => [`X-${index}`, String(index)]),
    () => [['X-Odd', latin1(chance.bytes(40))]],
    () => [['User-Agent', chance.pick(['', '() { :;}; echo x', '${jndi:ldap://127.0.0.1/a}', 'x'.repeat(2_000)])]],
    () => [
      ['Proxy-Authorization', 'Basic eDp5'],
      ['Proxy', `http://${canary}`],
      ['Proxy-Connection', 'keep-alive'],
    ],
    () => [
      ['Content-Type', chance.pick(['application/json', 'x', ''])],
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
  return Array.from({ length: 1 + chance.below(4) }, () => chance.pick(draw)()).flat();
}

const ACCEPTS = [
  'application/json',
  'application/x-ndjson',
  'application/x-ndjson;q=0.5, application/json',
  'application/x-ndjson;q=0',
  '*/*',
  'text/html',
  'application/*',
  '',
  'x',
  ';;;',
  'application/json;q=2',
  'application/X-NDJSON',
  'image/png',
  `${'a/b,'.repeat(300)}*/*`,
];

function requestId(chance: Chance, secrets: readonly string[]): string {
  return chance.pick([
    'sane',
    'a'.repeat(128),
    'a'.repeat(129),
    '',
    ' ',
    'two words',
    '<script>',
    '../..',
    latin1(chance.bytes(8)),
    '{}',
    '%00',
    chance.pick(secrets),
    'x'.repeat(5_000),
    'id\tid',
    'a\'b"c',
  ]);
}

/** Bytes that may stand in a header, though no client sends them: everything but the controls. */
function latin1(bytes: Buffer): string {
  return Buffer.from(bytes.map((byte) => (byte < 32 || byte === 127 ? 0xa0 : byte))).toString('latin1');
}
