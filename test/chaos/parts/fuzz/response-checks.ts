import { gunzipSync } from 'node:zlib';
import { PAGE_HOST } from '../../../../src/domain/references/page-url.js';
import { RESULTS, TRANSCRIPTS, WEBHOOKS, type ApiDocument, type Route, type Schema } from './api-document.js';
import { parseJson, type HttpResponse } from '../../../harness/http-request.js';
import { at, brokenIdentities, transcriptsOf } from '../../harness/transcripts.js';
import type { Area } from './credentials.js';
import { describe, type FuzzRequest } from './fuzz-request.js';

/** Errors that Node or the middleware may return on every route; the document does not repeat them for each. */
const ANYWHERE = new Set([400, 404, 405, 408, 431]);
const INTERNALS = /node_modules|\.[jt]s:\d+|postgres(?:ql)?:\/\/|ECONN|\bat [A-Za-z.]+ \(|SELECT .* FROM/;
const DOCS = /^\/docs(?:-json$|\/[A-Za-z0-9][A-Za-z0-9._-]*$|$)/;
const RAW_PAGE_URL = new RegExp(
  `^(?<page>/(?:videos|playlists)/(?:https?://?)?${PAGE_HOST}/[^?]*)(?<!/(?:transcripts?|videos))\\?(?<rest>[^/]*/(?:transcripts?|videos)(?:\\?.*)?)$`,
  'is',
);

export type Rule = 'status' | 'schema' | 'request id' | 'secret' | 'guard';
/** The violated rule, and how. */
type Fault = [rule: Rule, what: string] | undefined;

const UNDOCUMENTED: Fault = ['status', 'a status that the document does not name'];

/** Checks responses against the document and against the guarantees for every response. */
export class ResponseCheck {
  readonly findings: Record<Rule, string[]> = { status: [], schema: [], 'request id': [], secret: [], guard: [] };
  /** The operations with a response below 400, each as method and path. */
  private readonly succeeded = new Set<string>();

  constructor(
    private readonly document: ApiDocument,
    private readonly secrets: readonly string[],
  ) {}

  /** The operations that no request has completed. */
  get unsuccessful(): string[] {
    return this.document.routes.map(nameOf).filter((name) => !this.succeeded.has(name));
  }

  check(fuzzRequest: FuzzRequest, response: HttpResponse): void {
    for (const fault of this.faults(fuzzRequest, response)) {
      if (fault) this.findings[fault[0]].push(`${fault[1]} (${response.status} for ${describe(fuzzRequest)})`);
    }
  }

  private faults(fuzzRequest: FuzzRequest, response: HttpResponse): Fault[] {
    const { headers, status, whole } = response;
    const text = textOf(response);
    if (text === undefined) return [['schema', 'Content-Encoding is gzip but the body is not']];
    // Several would be joined with a comma.
    const id = String(headers['x-request-id'] ?? '');
    const all = Object.values(headers).flat().join('\n') + text;
    const routes = this.document.routesAt(pathOf(fuzzRequest.target) ?? '/%');
    const body = fuzzRequest.method === 'HEAD' ? undefined : text;
    return [
      /^[A-Za-z0-9._:/+=@-]{1,128}$/.test(id) ? undefined : ['request id', id || 'none'],
      headers['x-powered-by'] === undefined ? undefined : ['schema', 'X-Powered-By'],
      whole ? undefined : ['schema', 'the body is truncated'],
      this.secrets.some((secret) => all.includes(unprefixed(secret))) ? ['secret', 'a secret'] : undefined,
      status < 400 ? this.successFault(fuzzRequest, response, body, routes) : this.errorFault(response, body, routes),
    ];
  }

  private successFault(
    { method, target, credential, body: sent }: FuzzRequest,
    { status, headers }: HttpResponse,
    body: string | undefined,
    routes: readonly Route[],
  ): Fault {
    const path = pathOf(target) ?? '';
    if (status === 204 && method === 'OPTIONS') return undefined;
    if (DOCS.test(path)) return [200, 206, 301, 302, 304].includes(status) ? undefined : UNDOCUMENTED;
    const requested = method === 'HEAD' ? 'GET' : method;
    const route = routes.find((one) => one.method === requested && String(status) in one.operation.responses);
    if (!route) return UNDOCUMENTED;
    this.succeeded.add(nameOf(route));
    const area = areaOf(route);
    if (area && !credential.opens.includes(area)) return ['guard', `${credential.name} was accepted`];
    const { content, 'x-other-content': others } = route.operation.responses[status] ?? {};
    if (body === undefined || (!content && body === '')) return undefined;
    const type = typeOf(headers);
    const schema = (content?.[type] ?? others?.[type])?.schema;
    if (!schema) return ['schema', `not a type that the document names: ${type}`];
    if (type === 'text/event-stream') return eventsFault(body);
    const asDocuments = /[?&]as=documents/.test(target) || /"as":\s*"documents"/.test(String(sent));
    if (type === 'application/x-ndjson') return asDocuments ? this.documentsFault(body) : this.linesFault(route, body);
    return type === 'application/json' ? this.jsonFault(route, schema, parseJson(body)) : undefined;
  }

  private errorFault({ status, headers }: HttpResponse, body: string | undefined, routes: readonly Route[]): Fault {
    if (status >= 500) return ['status', `${status}: ${body?.slice(0, 200)}`];
    const described = routes.flatMap(({ operation }) => {
      const schema = operation.responses[status]?.content?.['application/json']?.schema;
      return schema ? [schema] : [];
    });
    if (described.length === 0 && !ANYWHERE.has(status)) return UNDOCUMENTED;
    if (body === undefined) return undefined;
    if (typeOf(headers) !== 'application/json') return ['schema', `an error of the type ${typeOf(headers)}`];
    const value = parseJson(body);
    const schemas = [...described, ...(ANYWHERE.has(status) ? [this.envelope(status)] : [])];
    const wrong = schemas.map((schema) => this.document.mismatch(schema, value));
    if (!wrong.includes(undefined)) return ['schema', wrong[0] ?? ''];
    // An error of JSON-RPC has no request id.
    const requestId = at(value, 'jsonrpc') === undefined ? at(value, 'error', 'requestId') : headers['x-request-id'];
    if (requestId !== headers['x-request-id']) return ['request id', `${String(requestId)} in the body`];
    return INTERNALS.test(body) ? ['secret', body.slice(0, 200)] : undefined;
  }

  /** The error envelope as the one operation describes it: 400 for everything that Node refuses. */
  private envelope(status: number): Schema {
    const { operation } = this.document.routes.find(({ path }) => path === TRANSCRIPTS) ?? {};
    const described = operation?.responses[status === 404 || status === 405 ? status : 400];
    return described?.content?.['application/json']?.schema ?? {};
  }

  private jsonFault({ path }: Route, schema: Schema, value: unknown): Fault {
    const wrong = this.document.mismatch(schema, value);
    if (wrong !== undefined) return ['schema', wrong];
    if (!path.endsWith('/transcripts')) return undefined;
    const transcripts = transcriptsOf(value);
    const [broken] = transcripts ? brokenIdentities(transcripts) : ['no results'];
    return broken === undefined ? undefined : ['schema', broken];
  }

  /** Each line is a piece of a text, or a video without one. */
  private documentsFault(body: string): Fault {
    for (const line of body.split('\n').filter(Boolean).map(parseJson)) {
      const schema = at(line, 'error') === undefined ? 'Document' : 'FailedDocument';
      const wrong = this.document.mismatch({ $ref: `#/components/schemas/${schema}` }, line);
      if (wrong !== undefined) return ['schema', wrong];
    }
    return undefined;
  }

  /** Each line is an event; together they are the response in JSON. */
  private linesFault(route: Route, body: string): Fault {
    const events = body.trimEnd().split('\n').map(parseJson);
    const ofType = (wanted: string): unknown => events.find((event) => at(event, 'type') === wanted);
    const results = events.filter((event) => at(event, 'type') === 'result').map((event) => at(event, 'result'));
    const last = events.at(-1);
    if (at(last, 'type') !== 'summary') return ['schema', 'the last line is no summary'];
    const named = (schema: string): Schema => ({ $ref: `#/components/schemas/${schema}` });
    if (route.path === RESULTS) {
      return this.jsonFault(route, named('JobResults'), { results, next: at(last, 'next'), job: at(last, 'job') });
    }
    const [channel, playlist] = [at(ofType('channel'), 'channel'), at(ofType('playlist'), 'playlist')];
    const of = { ...(channel !== undefined && { channel }), ...(playlist !== undefined && { playlist }) };
    const schema = channel === undefined ? (playlist === undefined ? 'Videos' : 'Playlist') : 'Channel';
    return this.jsonFault(route, named(`${schema}Transcripts`), { ...of, results, summary: at(last, 'summary') });
  }
}

function typeOf(headers: HttpResponse['headers']): string {
  return headers['content-type']?.split(';')[0] ?? '';
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
function eventsFault(text: string): Fault {
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
