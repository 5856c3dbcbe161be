import type { RandomSource } from '../../harness/random.js';
import { JOBS, MCP, TRANSCRIPTS, WEBHOOKS, type ApiDocument } from './api-document.js';
import type { Operation, Route, Schema } from './api-document.js';
import { mcpMessage } from './mcp-message.js';
import { CONTENT_TYPES, NASTY_BODIES, NASTY_HEADERS, NASTY_NAMES, NASTY_TEXTS, NASTY_VALUES } from './nasty-values.js';
import { channelId, hostileId, playlistId, videoId } from './targets.js';
import type { Draft } from './fuzz-request.js';

/** What requests refer to: objects that requests have created, to be requested and deleted, and a receiver of webhooks. */
export interface Known {
  organizations: string[];
  keys: string[];
  jobs: string[];
  subscriptions: string[];
  webhooks: string[];
  /** The URL of every webhook. */
  receiver: string;
}

/** Valid values of parameters and fields whose schema says less than their rule. */
const VALID_TEXTS: Readonly<Record<string, string>> = {
  ...{
    languages: 'en,de',
    kinds: 'video,short',
    include: 'tags',
    publishedAfter: '2026-01-01',
    q: 'tide',
    language: 'en',
  },
};

/** Requests generated from the OpenAPI document, valid and slightly invalid. */
export class ByDocument {
  constructor(
    private readonly document: ApiDocument,
    private readonly random: RandomSource,
    private readonly canary: string,
    private readonly known: Known,
  ) {}

  draft(): Draft {
    const { random } = this;
    const transcripts = this.document.routes.filter(({ path }) => path === TRANSCRIPTS);
    const route = random.pick(random.often(0.4) ? transcripts : this.document.routes);
    const path = route.path.replace(/\{[^}]+\}/g, () => this.pathValue(route.path));
    const query = this.query(route.operation);
    const draft: Draft = { method: route.method, target: query === '' ? path : `${path}?${query}`, headers: [] };
    draft.headers.push(...this.headers(route.operation));
    if (route.path === MCP && random.often(0.9)) draft.headers.push(['Accept', 'application/json, text/event-stream']);
    return route.operation.requestBody || random.often(0.03) ? this.withBody(draft, route) : draft;
  }

  private pathValue(path: string): string {
    const { random } = this;
    const readable = { channels: channelId, videos: videoId, playlists: playlistId };
    const [, valid] = Object.entries(readable).find(([folder]) => path.startsWith(`/${folder}/`)) ?? [];
    if (valid) return random.often(0.9) ? valid(random) : hostileId(random, this.canary);
    const ids = this.idsFor(path);
    if (random.often(0.8) && ids.length > 0) return random.pick(ids);
    return random.often(0.5) ? 'org_000000000000000000000000' : hostileId(random, this.canary).replaceAll('/', '%2F');
  }

  private idsFor(path: string): readonly string[] {
    const { jobs, subscriptions, webhooks, keys, organizations } = this.known;
    if (path.includes('/jobs/{id}')) return jobs;
    if (path.startsWith('/subscriptions/')) return subscriptions;
    if (path.startsWith('/webhooks/')) return webhooks;
    return path.includes('/keys/{id}') ? keys : organizations;
  }

  private query({ parameters = [] }: Operation): string {
    const { random } = this;
    const pairs: string[] = [];
    for (const { name, in: place, schema, example } of parameters) {
      // Documents are another form of the response, which is refused with most `Accept` headers.
      if (place !== 'query' || random.often(name === 'as' ? 0.9 : 0.4)) continue;
      const valid = name === 'limit' ? 1 + random.below(4) : (example ?? VALID_TEXTS[name] ?? this.valid(schema));
      const value = random.often(0.8) ? valid : random.pick(NASTY_TEXTS);
      pairs.push(`${name}=${random.often(0.97) ? encode(value) : random.pick(['%zz', '%ff', '%00', '+', '%25'])}`);
      if (random.often(0.03)) pairs.push(`${name}=${encode(value)}`);
    }
    if (random.often(0.06)) pairs.push(`${random.pick(NASTY_NAMES)}=${encode(random.pick(NASTY_TEXTS))}`);
    return pairs.join('&').replaceAll(' ', '+');
  }

  /** Headers with few values, so that requests share them. */
  private headers({ parameters = [] }: Operation): Draft['headers'] {
    const { random } = this;
    return parameters.flatMap(({ name, in: place }): Draft['headers'] =>
      place !== 'header' || random.often(0.5)
        ? []
        : [[name, random.often(0.8) ? `key-${random.below(40)}` : random.pick(NASTY_HEADERS)]],
    );
  }

  private withBody(draft: Draft, route: Route): Draft {
    const { random } = this;
    const body = this.body(this.validBody(route));
    const type = random.often(0.93) ? 'application/json' : random.pick(CONTENT_TYPES);
    const headers: Draft['headers'] = [...draft.headers, ['Content-Type', type]];
    if (random.often(0.04)) headers.push(['Content-Encoding', random.pick(['gzip', 'br', 'identity', 'x'])]);
    headers.push(['Content-Length', String(body.length)]);
    return { ...draft, headers, body };
  }

  private validBody({ path, operation }: Route): unknown {
    if (path === MCP) return mcpMessage(this.random, this.canary, this.known.jobs);
    const value = this.valid(this.document.resolved(operation.requestBody?.content['application/json']?.schema ?? {}));
    // Of its sources a job has one.
    if (path === JOBS)
      return Object.assign({}, value, { channel: channelId(this.random), playlist: undefined, videos: undefined });
    // The service would look up the host of any other URL.
    return path === WEBHOOKS ? Object.assign({}, value, { url: this.known.receiver }) : value;
  }

  private body(valid: unknown): Buffer {
    const { random } = this;
    const text = JSON.stringify(valid);
    const draw: [number, () => string | Buffer][] = [
      [12, () => text],
      [4, () => JSON.stringify(this.corrupted(valid))],
      [1, () => text.slice(0, random.below(text.length))],
      [1, () => JSON.stringify(random.pick(NASTY_VALUES))],
      [1, () => random.pick(NASTY_BODIES)],
      [1, () => '['.repeat(8_000)],
      [1, () => '{"a":'.repeat(3_000)],
      [2, () => this.nested(valid)],
      [1, () => `{"name":"${'x'.repeat(17_000)}"}`],
      [1, () => random.bytes(1 + random.below(60))],
      [1, () => Buffer.from(text, 'utf16le')],
    ];
    return Buffer.from(random.weighted(draw)());
  }

  /** Well-formed JSON, nested so deeply that recursion would exhaust the stack. */
  private nested(valid: unknown): string {
    const { random } = this;
    const [open, close] = random.often(0.5) ? ['[', ']'] : ['{"a":', '}'];
    const levels = random.pick([31, 33, 200, Math.floor(15_000 / (open.length + close.length))]);
    const names = ['other', ...Object.keys(typeof valid === 'object' && valid !== null ? valid : {})];
    return `{${JSON.stringify(random.pick(names))}:${open.repeat(levels)}1${close.repeat(levels)}}`;
  }

  private corrupted(valid: unknown): unknown {
    const { random } = this;
    if (typeof valid !== 'object' || valid === null) return random.pick(NASTY_VALUES);
    const entries = Object.entries(valid).flatMap(([name, value]): [string, unknown][] =>
      random.often(0.3) ? [] : [[name, random.often(0.5) ? value : random.pick(NASTY_VALUES)]],
    );
    if (random.often(0.3)) entries.push([random.pick(NASTY_NAMES), random.pick(NASTY_VALUES)]);
    return Object.fromEntries(entries);
  }

  private valid(given: Schema): unknown {
    const { random } = this;
    const schema = this.document.resolved(given.oneOf ? random.pick(given.oneOf) : given);
    if (schema.items && schema.example === undefined) return [this.valid(schema.items)];
    if (schema.enum) return random.pick(schema.enum);
    if (schema.properties) {
      const properties = Object.entries(schema.properties).filter(
        ([name]) => schema.required?.includes(name) === true || random.often(0.5),
      );
      return Object.fromEntries(
        properties.map(([name, property]) => [name, VALID_TEXTS[name] ?? this.valid(property)]),
      );
    }
    if (schema.example !== undefined && random.often(0.6)) return schema.example;
    const { minimum = 0, maximum = 1_000_000 } = schema;
    if (schema.type === 'integer' || schema.type === 'number') {
      return random.pick([minimum, Math.min(maximum, minimum + 1 + random.below(20)), maximum]);
    }
    return schema.type === 'boolean' ? random.often(0.5) : random.text(1 + random.below(12));
  }
}

function encode(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // A lone surrogate cannot be encoded, and a client cannot send one.
  return encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, ''));
}
