import { gunzipSync } from 'node:zlib';
import { PAGE_HOST } from '../../../../src/domain/page-url.js';
import { RESULTS, TRANSCRIPTS, WEBHOOKS, type ApiDocument, type Route, type Schema } from './api-document.js';
import { parseJson, type HttpResponse } from '../../../http-request.js';
import { brokenIdentities, transcriptsOf } from '../../harness/transcripts.js';
import type { Area } from './credentials.js';
import { describe, type FuzzRequest } from './fuzz-request.js';

/** Errors that Node or the middleware may return on every route; the document does not repeat them for each. */
const ANYWHERE = new Set([400, 404, 405, 408, 431]);
const INTERNALS = /node_modules|\.[jt]s:\d+|postgres(?:ql)?:\/\/|ECONN|\bat [A-Za-z.]+ \(|SELECT .* FROM/;
const NDJSON = 'application/x-ndjson';
const RAW_PAGE_URL = new RegExp(
  `^(?<page>/(?:videos|playlists)/(?:https?://?)?${PAGE_HOST}/[^?]*)(?<!/transcripts?)\\?(?<rest>[^/]*/transcripts?(?:\\?.*)?)$`,
  'is',
);

export type Rule = 'status' | 'schema' | 'request id' | 'secret' | 'guard';
type Findings = Record<Rule, string[]>;

/** Checks responses against the document and against the guarantees for every response. */
export class ResponseCheck {
  readonly findings: Findings = { status: [], schema: [], 'request id': [], secret: [], guard: [] };
  /** The operations with a response below 400, each as method and path. */
  readonly succeeded = new Set<string>();

  constructor(
    private readonly document: ApiDocument,
    private readonly secrets: readonly string[],
  ) {}

  check(fuzzRequest: FuzzRequest, response: HttpResponse): void {
    const found = (promise: Rule, what: string): void => {
      this.findings[promise].push(`${what} (${response.status} for ${describe(fuzzRequest)})`);
    };
    // Several would be joined with a comma.
    const { 'x-request-id': id = '', 'x-powered-by': poweredBy } = response.headers;
    if (!/^[A-Za-z0-9._:/+=@-]{1,128}$/.test(String(id))) found('request id', String(id) || 'none');
    if (poweredBy !== undefined) found('schema', 'X-Powered-By');
    if (!response.whole) found('schema', 'the body is truncated');
    const text = textOf(response);
    if (text === undefined) return found('schema', 'Content-Encoding is gzip but the body is not');
    const all = Object.values(response.headers).flat().join('\n') + text;
    if (this.secrets.some((secret) => all.includes(unprefixed(secret)))) found('secret', 'a secret');
    const path = pathOf(fuzzRequest.target) ?? '/%';
    const fault = this.fault(response, fuzzRequest.method === 'HEAD' ? undefined : text, path, fuzzRequest);
    if (fault) found(fault[0], fault[1]);
  }

  private fault(
    { status, headers }: HttpResponse,
    text: string | undefined,
    path: string,
    fuzzRequest: FuzzRequest,
  ): [Rule, string] | undefined {
    const { method } = fuzzRequest;
    const type = headers['content-type']?.split(';')[0] ?? '';
    const routes = this.document.routesAt(path);
    if (status >= 500) return ['status', `${status}: ${text?.slice(0, 200)}`];
    if (status >= 400) return this.errorFault(status, type, text, headers, routes);
    if (status === 204 && method === 'OPTIONS') return undefined;
    if (/^\/docs(?:-json$|\/[A-Za-z0-9][A-Za-z0-9._-]*$|$)/.test(path))
      return [200, 206, 301, 302, 304].includes(status) ? undefined : ['status', 'unknown'];
    if (path === '/' && status === 302) return undefined;
    const requested = method === 'HEAD' ? 'GET' : method;
    const route = routes.find((one) => one.method === requested && String(status) in one.operation.responses);
    if (!route) return ['status', 'a status that the document does not name'];
    this.succeeded.add(nameOf(route));
    const area = areaOf(route);
    if (area && !fuzzRequest.credential.opens.includes(area))
      return ['guard', `${fuzzRequest.credential.name} was accepted`];
    const { content } = route.operation.responses[status] ?? {};
    if (text === undefined || (!content && text === '')) return undefined;
    const schema = content?.[type]?.schema;
    if (!schema) return ['schema', `not a type that the document names: ${type}`];
    if (type === 'text/event-stream') return eventsFault(text);
    if (type === NDJSON) return route.path === RESULTS ? this.resultsFault(text) : this.linesFault(text);
    if (type !== 'application/json') return undefined;
    const value = parseJson(text);
    const wrong = this.document.mismatch(schema, value);
    if (wrong !== undefined) return ['schema', wrong];
    return route.path.endsWith('/transcripts') ? transcriptsFault(value) : undefined;
  }

  /** The operations that no request has completed. */
  unsuccessful(): string[] {
    return this.document.routes.map(nameOf).filter((name) => !this.succeeded.has(name));
  }

  private errorFault(
    status: number,
    type: string,
    text: string | undefined,
    headers: HttpResponse['headers'],
    routes: readonly Route[],
  ): [Rule, string] | undefined {
    const described = routes.flatMap(({ operation }) => {
      const schema = operation.responses[status]?.content?.['application/json']?.schema;
      return schema ? [schema] : [];
    });
    if (described.length === 0 && !ANYWHERE.has(status)) return ['status', 'a status that the document does not name'];
    if (text === undefined) return undefined;
    if (type !== 'application/json') return ['schema', `an error of the type ${type}`];
    const value = parseJson(text);
    const schemas = [...described, ...(ANYWHERE.has(status) ? [this.envelope(status)] : [])];
    const wrong = schemas.map((schema) => this.document.mismatch(schema, value));
    if (!wrong.includes(undefined)) return ['schema', wrong[0] ?? ''];
    // An error of JSON-RPC has no request id.
    if (typeof value === 'object' && value !== null && 'jsonrpc' in value) return undefined;
    const { requestId } = (value as { error: { requestId: string } }).error;
    if (requestId !== headers['x-request-id']) return ['request id', `${requestId} in the body`];
    return INTERNALS.test(text) ? ['secret', text.slice(0, 200)] : undefined;
  }

  /** The error envelope as the one operation describes it: 400 for everything that Node refuses. */
  private envelope(status: number): Schema {
    const { operation } = this.document.routes.find(({ path }) => path === TRANSCRIPTS) ?? {};
    const described = operation?.responses[status === 404 || status === 405 ? status : 400];
    return described?.content?.['application/json']?.schema ?? {};
  }

  private linesFault(text: string): [Rule, string] | undefined {
    const events = text.trimEnd().split('\n').map(parseJson) as Record<string, unknown>[];
    const response = {
      ...(events[0]?.['type'] === 'channel' && { channel: events[0]['channel'] }),
      ...(events[0]?.['type'] === 'playlist' && { playlist: events[0]['playlist'] }),
      results: events.filter(({ type }) => type === 'result').map(({ result }) => result),
      summary: events.at(-1)?.['summary'],
    };
    const schema = 'channel' in response ? 'Channel' : 'playlist' in response ? 'Playlist' : 'Videos';
    const wrong = this.document.mismatch({ $ref: `#/components/schemas/${schema}Transcripts` }, response);
    return wrong === undefined ? transcriptsFault(response) : ['schema', wrong];
  }

  private resultsFault(text: string): [Rule, string] | undefined {
    const events = text.trimEnd().split('\n').map(parseJson) as Record<string, unknown>[];
    const { type, next, job } = events.at(-1) ?? {};
    const results = events.slice(0, -1).map(({ result }) => result);
    const wrong = this.document.mismatch({ $ref: '#/components/schemas/JobResults' }, { results, next, job });
    if (wrong !== undefined) return ['schema', wrong];
    return type === 'summary' ? undefined : ['schema', 'the last line is no summary'];
  }
}

function transcriptsFault(value: unknown): [Rule, string] | undefined {
  const transcripts = transcriptsOf(value);
  if (!transcripts) return ['schema', 'no results'];
  const [broken] = brokenIdentities(transcripts);
  return broken === undefined ? undefined : ['schema', broken];
}

/** The path of a target as a server must parse it; undefined when there is none. */
function pathOf(target: string): string | undefined {
  // A target has no fragment, and dot segments are not resolved.
  const address = target.replaceAll('#', '%23');
  const [, rest] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]+(.*)$/i.exec(address) ?? [];
  const whole = address.startsWith('/') || rest === undefined ? address : rest.startsWith('/') ? rest : `/${rest}`;
  try {
    // The URL of a page that is the ID has a query of its own.
    const path = whole?.replace(RAW_PAGE_URL, '$<page>%3F$<rest>').split('?', 1)[0];
    if (path !== undefined) decodeURIComponent(path);
    return path;
  } catch {
    return undefined;
  }
}

function areaOf({ method, path }: Route): Area | undefined {
  const [, first] = path.split('/');
  // On the plan of the channels.
  if (path.endsWith('/transcripts') || (path === '/jobs' && method === 'POST')) return 'channels';
  if (path.startsWith(WEBHOOKS) && method === 'POST') return 'channels';
  // On every plan, as the usage is; a tool of MCP checks the plan itself.
  if (['videos', 'jobs', 'webhooks', 'mcp'].includes(first ?? '') || path.endsWith('/uploads')) return 'usage';
  return (['usage', 'admin', 'metrics'] as const).find((area) => area === first);
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** Server-sent events have JSON as their data. */
function eventsFault(text: string): [Rule, string] | undefined {
  const data = text.split('\n').filter((line) => line.startsWith('data:'));
  const isJson = data.length > 0 && data.every((line) => parseJson(line.slice('data:'.length)) !== undefined);
  return isJson ? undefined : ['schema', 'the data of an event is not JSON'];
}

/** The secret of a key is its random part, without the prefix. */
export function unprefixed(secret: string): string {
  return secret.startsWith('ctk_') ? secret.slice(10) : secret;
}

/** The decompressed body of a response; undefined when it is labelled gzip but is not. */
export function textOf({ headers, bytes, text }: HttpResponse): string | undefined {
  if (headers['content-encoding'] !== 'gzip') return text;
  try {
    return gunzipSync(bytes).toString();
  } catch {
    return undefined;
  }
}
