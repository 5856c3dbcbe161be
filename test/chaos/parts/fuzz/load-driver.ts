import { METHODS as METHODS_OF_NODE } from 'node:http';
import type { RandomSource } from '../../harness/random.js';
import type { ApiDocument } from './api-document.js';
import { ByDocument, type Known } from './by-document.js';
import type { Credential, Credentials } from './credentials.js';
import { oddHeaders } from './odd-headers.js';
import type { Draft, FuzzRequest } from './fuzz-request.js';
import { channelId, hostileTarget } from './targets.js';

/** All but CONNECT, which has no response. */
const METHODS = METHODS_OF_NODE.filter((method) => method !== 'CONNECT');

/** Generates one random request after the other. */
export class LoadDriver {
  private readonly byDocument: ByDocument;

  constructor(
    document: ApiDocument,
    private readonly random: RandomSource,
    private readonly host: string,
    private readonly canary: string,
    private readonly credentials: Credentials,
    known: Known,
  ) {
    this.byDocument = new ByDocument(document, random, canary, known);
  }

  next(): FuzzRequest {
    const { random } = this;
    const draw: [number, () => FuzzRequest][] = [
      [40, () => this.fuzzRequest('from the OpenAPI document', this.byDocument.draft())],
      [22, () => this.fuzzRequest('hostile addresses', { method: 'GET', target: this.hostile(), headers: [] })],
      [16, () => this.withOddHeaders()],
      [8, () => this.withAnyMethod()],
      [2, () => this.leaving()],
    ];
    return random.weighted(draw)();
  }

  private fuzzRequest(kind: string, draft: Draft): FuzzRequest {
    const credential = this.credential(draft.target);
    const own = new Set(draft.headers.map(([name]) => name.toLowerCase()));
    const added: Draft['headers'] = [
      ...(own.has('host') ? [] : [['Host', this.host] as [string, string]]),
      ...credential.headers.map(([name, value]): [string, string] => [name, value]),
      // Repeated authentication failures are limited by address, so most requests use their own address.
      ...(own.has('x-forwarded-for') || this.random.often(0.1)
        ? []
        : [['X-Forwarded-For', this.address()] as [string, string]]),
    ];
    return { ...draft, kind, headers: [...added, ...draft.headers], credential, leaves: false };
  }

  private withOddHeaders(): FuzzRequest {
    const { random } = this;
    const draft: Draft = random.often(0.5)
      ? this.byDocument.draft()
      : {
          method: 'GET',
          target: random.pick(['/usage', '/docs', '/docs/swagger-ui.css', '/health/live', '/metrics', '/docs-json']),
          headers: [],
        };
    const odd = oddHeaders(random, this.canary, this.credentials.secrets);
    return this.fuzzRequest('odd headers', { ...draft, headers: [...draft.headers, ...odd] });
  }

  private withAnyMethod(): FuzzRequest {
    const { random } = this;
    const target = random.often(0.5)
      ? this.hostile()
      : random.pick([`/channels/${channelId(random)}/transcripts?limit=1`, '/usage', '/', '*']);
    return this.fuzzRequest('methods', { method: random.pick(METHODS), target, headers: [] });
  }

  private leaving(): FuzzRequest {
    const target = `/channels/${channelId(this.random)}/transcripts?limit=3`;
    const draft: Draft = { method: 'GET', target, headers: [] };
    return { ...this.fuzzRequest('client leaves at once', draft), leaves: true };
  }

  /** Keys of every kind, mostly the valid one. */
  private credential(target: string): Credential {
    const { random, credentials } = this;
    if (random.often(0.4)) return random.pick(credentials.all);
    if (/^\/metrics/i.test(target)) return credentials.metrics;
    return /^\/admin/i.test(target) ? credentials.admin : credentials.pro;
  }

  private hostile(): string {
    return hostileTarget(this.random, this.canary, this.credentials.secrets);
  }

  private address(): string {
    return `10.${this.random.below(256)}.${this.random.below(256)}.${this.random.below(256)}`;
  }
}
