import type { Chance } from '../../harness/random.js';
import { TRANSCRIPTS, type ApiDocument, type Operation, type Schema } from './api-document.js';
import { channelId, hostileId } from './targets.js';
import type { Draft } from './fuzz-request.js';

const NASTY_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  2 ** 53 + 2,
  '',
  ' ',
  'ok',
  '0',
  'NaN',
  [],
  {},
  [[]],
  { $gt: '' },
  'a\u0000b',
  '\ud800',
  '😀',
  '<script>',
  "'; DROP TABLE organizations; --",
  '__proto__',
  'x'.repeat(300),
  'x'.repeat(20_000),
];

const NASTY_TEXTS: readonly string[] = [
  '',
  '0',
  '-1',
  '1.5',
  '1e1',
  '+1',
  ' 1',
  '1 ',
  '٣',
  '0x10',
  '１',
  '25',
  '500',
  '99999999999999999999',
  'null',
  'true',
  'en',
  'en,de',
  'en,,de',
  ',',
  'EN',
  'en-GB',
  'x-'.repeat(40),
  'zz'.repeat(2_000),
  '\u0000',
  '%',
  '%zz',
  '🚢',
  '*',
  '../..',
];

const NASTY_NAMES: readonly string[] = [
  'limit[]',
  'limit[a]',
  'Limit',
  'page',
  'cursor',
  '__proto__',
  'constructor',
  'toString',
  'a'.repeat(500),
  '%zz',
  '[]',
  '',
  'languages[]',
  'verify',
  'after',
  'limit%00',
];

const CONTENT_TYPES: readonly string[] = [
  'text/plain',
  'application/xml',
  'application/json; charset=utf-16',
  'application/json;charset="utf-8"',
  'multipart/form-data',
  'application/x-www-form-urlencoded',
  'application/json, text/html',
  '',
  '/',
  'application/merge-patch+json',
];

/** What the admin routes have made so far, to be asked for and destroyed. */
export interface Known {
  organizations: string[];
  keys: string[];
}

/** Requests for what the document describes: as it says, and a little beside it. */
export class ByDocument {
  constructor(
    private readonly document: ApiDocument,
    private readonly chance: Chance,
    private readonly canary: string,
    private readonly known: Known,
  ) {}

  draft(): Draft {
    const { chance } = this;
    const transcripts = this.document.routes.filter(({ path }) => path === TRANSCRIPTS);
    const route = chance.pick(chance.often(0.4) ? transcripts : this.document.routes);
    const path = route.path.replace(/\{[^}]+\}/g, () => this.pathValue(route.path));
    const query = this.query(route.operation);
    const draft: Draft = { method: route.method, target: query === '' ? path : `${path}?${query}`, headers: [] };
    return route.operation.requestBody || chance.often(0.03) ? this.withBody(draft, route.operation) : draft;
  }

  private pathValue(path: string): string {
    const { chance, known } = this;
    if (path === TRANSCRIPTS) return chance.often(0.9) ? channelId(chance) : hostileId(chance, this.canary);
    const ids = path.includes('/keys/{id}') ? known.keys : known.organizations;
    if (chance.often(0.8) && ids.length > 0) return chance.pick(ids);
    return chance.often(0.5) ? 'org_000000000000000000000000' : hostileId(chance, this.canary).replaceAll('/', '%2F');
  }

  private query({ parameters = [] }: Operation): string {
    const { chance } = this;
    const pairs: string[] = [];
    for (const { name, in: place, schema, example } of parameters) {
      if (place !== 'query' || chance.often(0.4)) continue;
      const valid = name === 'limit' ? 1 + chance.below(4) : (example ?? this.valid(schema));
      const value = chance.often(0.8) ? valid : chance.pick(NASTY_TEXTS);
      pairs.push(`${name}=${chance.often(0.97) ? encode(value) : chance.pick(['%zz', '%ff', '%00', '+', '%25'])}`);
      if (chance.often(0.03)) pairs.push(`${name}=${encode(value)}`);
    }
    if (chance.often(0.06)) pairs.push(`${chance.pick(NASTY_NAMES)}=${encode(chance.pick(NASTY_TEXTS))}`);
    return pairs.join('&').replaceAll(' ', '+');
  }

  private withBody(draft: Draft, { requestBody }: Operation): Draft {
    const { chance } = this;
    const schema = this.document.resolved(requestBody?.content['application/json']?.schema ?? {});
    const value = this.valid(schema);
    const body = this.body(value);
    const type = chance.often(0.93) ? 'application/json' : chance.pick(CONTENT_TYPES);
    const headers: Draft['headers'] = [['Content-Type', type]];
    if (chance.often(0.04)) headers.push(['Content-Encoding', chance.pick(['gzip', 'br', 'identity', 'x'])]);
    headers.push(['Content-Length', String(body.length)]);
    return { ...draft, headers, body };
  }

  private body(valid: unknown): Buffer {
    const { chance } = this;
    const text = JSON.stringify(valid);
    const draw: [number, () => string | Buffer][] = [
      [12, () => text],
      [4, () => JSON.stringify(this.corrupted(valid))],
      [1, () => text.slice(0, chance.below(text.length))],
      [1, () => JSON.stringify(chance.pick(NASTY_VALUES))],
      [
        1,
        () =>
          chance.pick([
            '',
            ' ',
            '\ufeff{}',
            '{"a":1}{"a":2}',
            'undefined',
            '{a:1}',
            '{"name":"a","name":"b","plan":"pro"}',
          ]),
      ],
      [1, () => '['.repeat(8_000)],
      [1, () => '{"a":'.repeat(3_000)],
      [2, () => this.nested(valid)],
      [1, () => `{"name":"${'x'.repeat(17_000)}"}`],
      [1, () => chance.bytes(1 + chance.below(60))],
      [1, () => Buffer.from(text, 'utf16le')],
    ];
    return Buffer.from(chance.weighted(draw)());
  }

  /** Well-formed, and so deep that a recursion over it would exhaust the stack. */
  private nested(valid: unknown): string {
    const { chance } = this;
    const [open, close] = chance.pick([
      ['[', ']'],
      ['{"a":', '}'],
    ] as const);
    const levels = chance.pick([31, 33, 200, Math.floor(15_000 / (open.length + close.length))]);
    const names = ['other', ...Object.keys(typeof valid === 'object' && valid !== null ? valid : {})];
    return `{${JSON.stringify(chance.pick(names))}:${open.repeat(levels)}1${close.repeat(levels)}}`;
  }

  private corrupted(valid: unknown): unknown {
    const { chance } = this;
    if (typeof valid !== 'object' || valid === null) return chance.pick(NASTY_VALUES);
    const entries = Object.entries(valid).flatMap(([name, value]): [string, unknown][] =>
      chance.often(0.3) ? [] : [[name, chance.often(0.5) ? value : chance.pick(NASTY_VALUES)]],
    );
    if (chance.often(0.3)) entries.push([chance.pick(NASTY_NAMES), chance.pick(NASTY_VALUES)]);
    return Object.fromEntries(entries);
  }

  private valid(given: Schema): unknown {
    const { chance } = this;
    const schema = this.document.resolved(given);
    if (schema.enum) return chance.pick(schema.enum);
    if (schema.properties) {
      const properties = Object.entries(schema.properties).filter(
        ([name]) => schema.required?.includes(name) === true || chance.often(0.5),
      );
      return Object.fromEntries(properties.map(([name, property]) => [name, this.valid(property)]));
    }
    if (schema.example !== undefined && chance.often(0.6)) return schema.example;
    const { minimum = 0, maximum = 1_000_000 } = schema;
    if (schema.type === 'integer' || schema.type === 'number') {
      return chance.pick([minimum, Math.min(maximum, minimum + 1 + chance.below(20)), maximum]);
    }
    return schema.type === 'boolean' ? chance.often(0.5) : chance.text(1 + chance.below(12));
  }
}

function encode(value: unknown): string {
  // A lone surrogate cannot be encoded, and a client cannot send one.
  return encodeURIComponent(
    (typeof value === 'string' ? value : JSON.stringify(value)).replaceAll(/\p{Surrogate}/gu, ''),
  );
}
