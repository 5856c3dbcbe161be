import type { RandomSource } from '../../harness/random.js';

const CHANNELS = [
  '@harbourlight',
  '@tidewater',
  'emptyslip',
  'UCfogsignalradio________',
  '@2-videos-no-9',
  '@3-videos-no-20',
];
const NOWHERE = ['@no-such-channel', 'UC0000000000000000000000', '@sunkentrawler', '@drydock', 'UC', '@', 'ab', '@ab'];

/** An existing channel. */
export function channelId(random: RandomSource): string {
  return random.often(0.3) ? `@${1 + random.below(4)}-videos-no-${1 + random.below(30)}` : random.pick(CHANNELS);
}

/** A video with a transcript, without one, or that does not exist, as its ID or URL. */
export function videoId(random: RandomSource): string {
  const id = random.pick(['tw-tea_____', 'hl-dinghy__', 'hl-silent__', 'hl-tidecam_', 'hl-private_', 'no-such-vid']);
  const url = `https://www.youtube.com/watch?v=${id}`;
  return random.pick([id, id, url, encodeURIComponent(url), `https://youtu.be/${id}`, `${url}&t=${random.text(3)}`]);
}

/** A playlist, one that does not exist, or a list of another kind, as its ID or URL. */
export function playlistId(random: RandomSource): string {
  const id = random.pick(['UUtidewater_____________', `PL${'unknown'.padEnd(32, '_')}`, 'RDtw-tea_____', 'WL', 'PL']);
  const url = `https://www.youtube.com/playlist?list=${id}`;
  return random.pick([id, id, url, encodeURIComponent(url)]);
}

/** Unusual to hostile texts in place of a channel, as written in the request line. */
export function hostileId(random: RandomSource, canary: string): string {
  const name = random.pick([...CHANNELS, ...NOWHERE]);
  const site = random.pick([
    canary,
    `http://${canary}`,
    `http://${canary}/@tidewater`,
    `https://${canary}/channel/UCharbourlight__________`,
    `//${canary}/@tidewater`,
    `http://www.youtube.com@${canary}/@tidewater`,
    `http://${canary}#www.youtube.com/@tidewater`,
    `http://www.youtube.com:80@${canary}/@tidewater`,
    `https://www.youtube.com.${canary}/@tidewater`,
    `https://www.youtube.com/redirect?q=http://${canary}/`,
    `https://www.youtube.com/@tidewater/../../../${canary}`,
    'http://169.254.169.254/latest/meta-data/',
    'http://127.0.0.1:5432/@tidewater',
    'http://[::1]/@tidewater',
    'http://0x7f000001/@a',
    'http://2130706433/@a',
    'http://localhost/@tidewater',
    'file:///etc/passwd',
    'gopher://127.0.0.1:6379/_FLUSHALL',
    'jar:http://127.0.0.1!/x',
    'https://youtu.be/hl-dinghy__',
    'https://www.youtube.com/watch?v=hl-dinghy__',
  ]);
  const draw: (() => string)[] = [
    () => encodeURIComponent(site),
    () => site.replaceAll(' ', '%20'),
    () => encodeURIComponent(encodeURIComponent(site)),
    () => site.replace('://', ':/'),
    () => `${encodeURIComponent(name)}%2F${random.pick(['videos', '..', '%00', '%2F', 'x'.repeat(40)])}`,
    () => `${name}%00`,
    () => `%00${name}`,
    () => `${name}%0d%0aX-Injected:%20yes`,
    () => `${name}${random.pick(['%zz', '%', '%c3', '%c3%28', '%e0%80%af', '%ff', '%u0041', '%2'])}`,
    () => `${random.pick(['..', '%2e%2e', '%2e%2e%2f%2e%2e', '..%2f..%2fadmin', '..;', '....//', '.'])}`,
    () => `..\\..\\${name}`,
    () => `%5c%5c${canary}%5cshare`,
    () => random.pick(['@海の灯台', '@münster', '@😀😀😀']),
    () =>
      encodeURIComponent(random.pick(['@海の灯台', '@\u202eevil', '@a\u0301bc', '@😀😀😀', '@ａｂｃ', '@\u200bxyz'])),
    () => `@${'a'.repeat(random.pick([29, 30, 31, 100, 2_047, 2_048, 6_000]))}`,
    () => encodeURIComponent(`https://www.youtube.com/@tidewater?x=${'y'.repeat(random.below(3_000))}`),
    () => encodeURIComponent(`https://www.youtube.com/@tidewater/${'a/'.repeat(random.below(50))}`),
    () => encodeURIComponent(random.bytes(1 + random.below(30)).toString('latin1')),
    () => [...random.bytes(1 + random.below(20))].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
    () => random.pick(["'%20OR%201=1--", '%3Cscript%3E', '{{7*7}}', '__proto__', '*', ':id', '(.*)+$']),
    () => random.pick([...CHANNELS, ...NOWHERE]),
  ];
  return random.pick(draw)();
}

const SPELT = ['/metrics', '/usage', '/admin/organizations', '/health/live', '/docs', '/docs-json'];

/** A route in another spelling than the document's, which proxies and servers may treat as equal. */
function otherSpelling(random: RandomSource): string {
  const path = random.often(0.3) ? `/channels/${channelId(random)}/transcripts` : random.pick(SPELT);
  const at = 1 + random.below(path.length - 1);
  const encoded = `%${path.charCodeAt(at).toString(16)}`;
  const draw: (() => string)[] = [
    () => path.toUpperCase(),
    () => path.slice(0, at) + path.charAt(at).toUpperCase() + path.slice(at + 1),
    () => path.slice(0, at) + encoded + path.slice(at + 1),
    () => path.slice(0, at) + encoded.replace('%', '%25') + path.slice(at + 1),
    () => path + random.pick(['/', '//', '/.', '/..', '/%2e', '%2f', '.', ';', ';a=b', '#', '#/', '\\']),
    () => path + random.pick(['%20', '%00', '%09']),
    () => `${random.pick(['/', '/.', '/x/..', '/%2e', '/docs/%2e%2e', '\\', '/;', '/%2f'])}${path}`,
    () => `http://127.0.0.1${random.pick(['', '/', '/.', '/x/..', '/%2e%2e', '/docs/..', '\\'])}${path}`,
    () => path.replaceAll('/', random.pick(['//', '/./', '/x/../', '/%2e/'])),
  ];
  return random.pick(draw)();
}

/** A secret in a path, encoded repeatedly to hide it. */
function encodedSecret(random: RandomSource, secret: string): string {
  let text = secret;
  for (let layers = 1 + random.below(4); layers > 0; layers -= 1) {
    text = Array.from(text, (character) =>
      /[%_]/.test(character) || random.often(0.1) ? `%${character.charCodeAt(0).toString(16)}` : character,
    ).join('');
  }
  return random.pick([`/${text}`, `/channels/${text}/transcripts`, `/%zz/${text}`, `/${'x'.repeat(250)}/${text}`]);
}

const ODD_PATHS = [
  '/docs/../usage',
  '/docs/..%2f..%2fpackage.json',
  '/docs/swagger-ui.css%00',
  '/docs/%5c..%5c..%5cetc',
  '/docs//etc/passwd',
  '/docs-yaml',
  '/docs/index.html',
  '/Usage',
  '/usage/',
  '/usage//',
  '/usage%2f',
  '/%75sage',
  '/usage?',
  '/usage?a=b&a=c',
  '/usage%00',
  '/admin',
  '/admin/',
  '/admin/organizations/..%2f..',
  '/admin/%2e%2e/usage',
  '/ADMIN/organizations',
  '/jobs/',
  '/jobs/..%2fusage',
  '/jobs/%00',
  '/jobs/job_x/results/',
  '/metrics/',
  '/METRICS',
  '/health',
  '/health/live/',
  '/favicon.ico',
  '/.env',
  '/robots.txt',
];

/** A request target: a known route, a similar one, or an unknown one. */
export function hostileTarget(random: RandomSource, canary: string, secrets: readonly string[]): string {
  const id = hostileId(random, canary);
  const transcripts = `/channels/${id}/transcripts`;
  const secret = random.pick(secrets);
  const draw: [number, () => string][] = [
    [1, () => random.pick([`/${secret}`, `/usage?${secret}=1`, `/usage?key=${secret}`])],
    [10, () => transcripts],
    [3, () => `${transcripts}?limit=${1 + random.below(3)}`],
    [1, () => `${transcripts}/`],
    [1, () => `/${transcripts}`],
    [1, () => transcripts.toUpperCase()],
    [8, () => otherSpelling(random)],
    [2, () => encodedSecret(random, secret)],
    [1, () => `${transcripts};jsessionid=1`],
    [1, () => `${transcripts}#fragment`],
    [1, () => `http://127.0.0.1${transcripts}`],
    [2, () => `http://${canary}${random.pick([transcripts, '/usage', '/', ''])}`],
    [1, () => `https://${canary}/usage`],
    [1, () => random.pick(['*', '//', '/', '/.', '/..', '/%2e', '/%', '/%zz', '?', '/?', 'usage', `${canary}:443`])],
    [8, () => random.pick(ODD_PATHS)],
    [1, () => `/${id}`],
    [1, () => `/${'a/'.repeat(random.below(3_000))}`],
    [1, () => `/usage?${'a=1&'.repeat(random.below(3_000))}`],
  ];
  // A space would end the target, but this must remain one request.
  return random.weighted(draw)().replaceAll(' ', '%20');
}
