import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../../../config/environment.js';
import { parseUrl } from '../../../domain/page-url.js';
import { type Exchange, ExchangeListener } from '../egress/http-transport.js';
import { asString, at, isObject } from '../response-parsing.js';
import type { DoctorReport } from './doctor.js';

const REMOVED = 'removed';
/** Parts of responses that no parser reads and that identify the caller, such as stream URLs and tracking. */
const REMOVED_PROPERTIES = new Set([
  ...['streamingData', 'playbackTracking', 'adPlacements', 'adSlots', 'playerAds', 'adBreakHeartbeatParams'],
  ...['attestation', 'heartbeatParams', 'playerConfig', 'frameworkUpdates', 'serviceTrackingParams', 'trackingParams'],
  ...['clickTrackingParams', 'trackingParam', 'loggingDirectives', 'responseId', 'rolloutToken', 'remoteHost'],
  ...['remoteIp', 'serviceIntegrityDimensions', 'context', 'cpn', 'eventId', 'topbar'],
]);
const CONTINUATION_PROPERTIES = new Set(['continuation', 'token']);
const VISITOR_PROPERTIES = new Set(['visitorData', 'visitor_data']);
/** What a caption URL needs to be recognized; `exp` states whether a token is required. */
const CAPTION_PARAMETERS = ['v', 'lang', 'kind', 'name', 'fmt', 'exp', 'tlang', 'caps'];
const IPV4 = /(?<!\d|\d\.)(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)/g;
/** In full, or with one run of zeros left out. */
const IPV6 =
  /(?<![\da-f:])(?:(?:[\da-f]{1,4}:){7}[\da-f]{1,4}|(?:[\da-f]{1,4}:){1,6}(?::[\da-f]{1,4}){1,6})(?![\da-f:])/gi;
/** Longer runs are tokens or signatures: an ID has 11 to 34 characters. */
const LONG_TOKEN = /[\w%=+/-]{64,}/g;
const HTML_PAGE = /^\s*<(?:!doctype html|html)/i;
/** The inputs and data attributes of a page can contain tokens. */
const HTML_VALUE = /\b(value|data-s|nonce|content)=(?:"[^"]*"|'[^']*')/g;
const CAPTION_URL = /https:\/\/[a-z.]{0,9}youtube\.com\/api\/timedtext\?[^\s"'<>\\]*/g;

/** A secret of fewer characters would also remove ordinary words. */
const SECRET_LENGTH_MIN = 6;

/**
 * Collects the traffic and writes it in the form of the recordings that the recordings' suite plays: one file for each
 * exchange, and the report beside them. No header is written.
 */
export class TrafficRecording extends ExchangeListener {
  private readonly exchanges: Exchange[] = [];

  constructor(private readonly environment: Environment) {
    super();
  }

  override exchanged(exchange: Exchange): void {
    this.exchanges.push(exchange);
  }

  /** Writes the files. The directory is created. */
  async write(directory: string, report: DoctorReport): Promise<void> {
    const redactor = new TrafficRedactor(this.secrets());
    const source = `npm run smoke, ${new Date().toISOString().slice(0, 10)}`;
    await mkdir(join(directory, 'report'), { recursive: true });
    for (const [index, exchange] of this.exchanges.entries()) {
      const name = `${String(index + 1).padStart(4, '0')}-${exchange.kind}-${exchange.client}`.toLowerCase();
      const recording = { name, source, ...recordedExchange(exchange, redactor) };
      await writeFile(join(directory, `${name}.json`), `${JSON.stringify(recording)}\n`);
    }
    // The report has no text of the platform beside names and titles, but a title can contain anything.
    await writeFile(join(directory, 'report/report.json'), `${JSON.stringify(redactor.json(report), null, 2)}\n`);
  }

  /** Names and passwords of proxies, hosts, and the visitor data, cookies and tokens of the exchanges. */
  private secrets(): Set<string> {
    const { UPSTREAM_PROXY_URL = [], PO_TOKEN_URL = '', YOUTUBE_BASE_URL = '' } = this.environment;
    const urls = [...UPSTREAM_PROXY_URL, PO_TOKEN_URL, YOUTUBE_BASE_URL].flatMap((text) => parseUrl(text) ?? []);
    const found = [
      ...urls.flatMap(({ username, password, hostname }) => [username, password, hostname]),
      ...this.exchanges.flatMap(secretsOf),
    ];
    return new Set([...found, ...found.map(decoded)].filter((text) => text.length >= SECRET_LENGTH_MIN));
  }
}

function secretsOf({ outgoing, response }: Exchange): string[] {
  const cookies = [response.headers['set-cookie'] ?? []].flat().map((cookie) => /=([^;]*)/.exec(cookie)?.[1] ?? '');
  const inBodies = `${outgoing.body ?? ''}${response.body}`.matchAll(/"(?:visitorData|poToken)"\s*:\s*"([^"]+)"/g);
  return [
    outgoing.headers['x-goog-visitor-id'] ?? '',
    outgoing.url.searchParams.get('pot') ?? '',
    ...cookies,
    ...[...inBodies].map(([, value = '']) => value),
  ];
}

function recordedExchange({ client, outgoing, response }: Exchange, redactor: TrafficRedactor): object {
  const body = outgoing.body === undefined ? null : parse(outgoing.body);
  const sentAs = at(body, 'context', 'client');
  return {
    request: {
      method: outgoing.body === undefined ? 'GET' : 'POST',
      path: redactor.text(outgoing.url.pathname + (body === null ? recordedQuery(outgoing.url) : '')),
      client: asString(at(sentAs, 'clientName')) ?? client,
      clientVersion: asString(at(sentAs, 'clientVersion')),
      body: redactor.json(body),
    },
    response: {
      status: response.status,
      contentType: [response.headers['content-type'] ?? ''].flat()[0] ?? '',
      body: redactor.json(parse(response.body)),
    },
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A JSON value; any other text as it is. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Removes addresses, tokens, keys, cookies and visitor data from recorded traffic. */
export class TrafficRedactor {
  private readonly continuations = new Map<string, string>();

  /** @param secrets texts that are removed wherever they occur */
  constructor(private readonly secrets: ReadonlySet<string>) {}

  /** A JSON value without them. Continuation tokens are numbered, so that a replay finds the page of each. */
  json(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((item: unknown) => this.json(item));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, item]): [string, unknown][] => {
        if (REMOVED_PROPERTIES.has(name)) return [];
        if (VISITOR_PROPERTIES.has(name)) return [[name, REMOVED]];
        if (CONTINUATION_PROPERTIES.has(name) && typeof item === 'string') return [[name, this.continuation(item)]];
        return [[name, this.json(item)]];
      }),
    );
  }

  /** A text without them. */
  text(text: string): string {
    let redacted = HTML_PAGE.test(text) ? text.replace(HTML_VALUE, `$1="${REMOVED}"`) : text;
    for (const secret of this.secrets) redacted = redacted.replaceAll(secret, REMOVED);
    return redacted
      .replace(CAPTION_URL, captionUrl)
      .replace(IPV4, '0.0.0.0')
      .replace(IPV6, '::')
      .replace(LONG_TOKEN, REMOVED);
  }

  private continuation(token: string): string {
    const known = this.continuations.get(token) ?? `continuation-${this.continuations.size + 1}`;
    this.continuations.set(token, known);
    return known;
  }
}

function captionUrl(text: string): string {
  const url = parseUrl(text);
  if (!url) return REMOVED;
  for (const name of [...url.searchParams.keys()])
    if (!CAPTION_PARAMETERS.includes(name)) url.searchParams.delete(name);
  return url.href;
}

/** The query of a GET request, with the parameters that select what is read. */
export function recordedQuery(url: URL): string {
  const kept = [...CAPTION_PARAMETERS, 'channel_id'];
  const query = new URLSearchParams([...url.searchParams].filter(([name]) => kept.includes(name)));
  return query.size === 0 ? '' : `?${query.toString()}`;
}
