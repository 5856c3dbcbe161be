import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../../../config/environment.js';
import { parseUrl } from '../../../domain/parse-url.js';
import { type Exchange, ExchangeListener } from '../egress/http-transport.js';
import { asString, at } from '../response-parsing.js';
import type { DoctorReport } from './doctor.js';
import { recordedQuery, TrafficRedactor } from './redact-traffic.js';

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
