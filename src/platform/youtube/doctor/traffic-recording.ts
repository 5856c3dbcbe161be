import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJson } from '../../../domain/parse-json.js';
import { type Exchange, ExchangeListener } from '../egress/http-transport.js';
import { asString, at } from '../response-parsing.js';
import type { DoctorReport } from './doctor.js';

const REMOVED = 'removed';
const PLAYBACK = ['streamingData', 'playerConfig', 'playbackTracking', 'attestation', 'heartbeatParams', 'cpn'];
const ADVERTISEMENTS = ['adPlacements', 'adSlots', 'playerAds', 'adBreakHeartbeatParams'];
const TRACKING = ['trackingParam', 'trackingParams', 'clickTrackingParams', 'serviceTrackingParams', 'eventId'];
const CALLER = ['remoteHost', 'remoteIp', 'responseId', 'rolloutToken', 'serviceIntegrityDimensions', 'context'];
const PAGE = ['frameworkUpdates', 'loggingDirectives', 'topbar'];
/** Parts of responses that no parser reads and that identify the caller, such as stream URLs and tracking. */
const REMOVED_PROPERTIES = new Set([...PLAYBACK, ...ADVERTISEMENTS, ...TRACKING, ...CALLER, ...PAGE]);
const IPV4 = /(?<!\d|\d\.)(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)/g;
/** In full, or with one run of zeros left out. */
const IPV6 =
  /(?<![\da-f:])(?:(?:[\da-f]{1,4}:){7}[\da-f]{1,4}|(?:[\da-f]{1,4}:){1,6}(?::[\da-f]{1,4}){1,6})(?![\da-f:])/gi;
/** Tokens and signatures: an ID has 11 to 34 characters. */
const LONG_TOKEN = /[\w%=+/-]{64,}/g;
/** The inputs and data attributes of a page can contain tokens. */
const HTML_VALUE = /\b(value|data-s|nonce|content)=(?:"[^"]*"|'[^']*')/g;
const CAPTION_URL = /https:\/\/[a-z.]{0,9}youtube\.com\/api\/timedtext\?[^\s"'<>\\]*/g;
/** What a URL needs to be recognized; `exp` states whether a caption URL requires a token. */
const RECORDED_PARAMETERS = ['v', 'lang', 'kind', 'name', 'fmt', 'exp', 'tlang', 'caps', 'channel_id'];
/**
 * Collects the traffic and writes it in the form of the recordings that the recordings' suite plays: one file for each
 * exchange, and the report beside them. No header is written.
 */
export class TrafficRecording extends ExchangeListener {
  private readonly exchanges: Exchange[] = [];

  override exchanged(exchange: Exchange): void {
    this.exchanges.push(exchange);
  }

  /** Writes the files. The directory is created. */
  async write(directory: string, report: DoctorReport): Promise<void> {
    const redacted = createTrafficRedactor();
    const source = `npm run smoke, ${new Date().toISOString().slice(0, 10)}`;
    await mkdir(join(directory, 'report'), { recursive: true });
    for (const [index, exchange] of this.exchanges.entries()) {
      const name = `${String(index + 1).padStart(4, '0')}-${exchange.kind}-${exchange.client}`.toLowerCase();
      await writeFile(join(directory, `${name}.json`), `${redacted({ name, source, ...recordingOf(exchange) })}\n`);
    }
    await writeFile(join(directory, 'report/report.json'), `${redacted(report)}\n`);
  }
}

function recordingOf({ client, outgoing, response }: Exchange): object {
  const body = outgoing.body === undefined ? null : parseJson(outgoing.body);
  const sentAs = at(body, 'context', 'client');
  return {
    request: {
      method: body === null ? 'GET' : 'POST',
      path: outgoing.url.pathname + (body === null ? withoutTokens(outgoing.url).search : ''),
      client: asString(at(sentAs, 'clientName')) ?? client,
      clientVersion: asString(at(sentAs, 'clientVersion')),
      body,
    },
    response: {
      status: response.status,
      contentType: [response.headers['content-type'] ?? ''].flat()[0] ?? '',
      // Captions and refusal pages are written as they are.
      body: parseJson(response.body) ?? response.body,
    },
  };
}

function withoutTokens(url: URL): URL {
  const reduced = new URL(url);
  for (const name of url.searchParams.keys())
    if (!RECORDED_PARAMETERS.includes(name)) reduced.searchParams.delete(name);
  return reduced;
}

/**
 * Writes values as JSON without addresses, tokens and visitor data. Long tokens are numbered, each with one number, so that a
 * replay finds the page of a continuation.
 */
export function createTrafficRedactor(): (value: unknown) => string {
  const numbers = new Map<string, string>();
  const numbered = (token: string): string => {
    const known = numbers.get(token) ?? `token-${numbers.size + 1}`;
    numbers.set(token, known);
    return known;
  };
  const redactText = (text: string) =>
    text
      .replace(HTML_VALUE, `$1="${REMOVED}"`)
      .replace(CAPTION_URL, (url) => withoutTokens(new URL(url)).href)
      .replace(IPV4, '0.0.0.0')
      .replace(IPV6, '::')
      .replace(LONG_TOKEN, numbered);
  return (value) =>
    JSON.stringify(value, (name, item: unknown) => {
      if (REMOVED_PROPERTIES.has(name)) return undefined;
      if (name === 'visitorData') return REMOVED;
      return typeof item === 'string' ? redactText(item) : item;
    });
}
