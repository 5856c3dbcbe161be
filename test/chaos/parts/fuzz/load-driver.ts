import type { RandomSource } from '../../harness/random.js';
import type { ApiDocument } from './api-document.js';
import { ByDocument, type Known } from './by-document.js';
import type { Credential, Credentials } from './credentials.js';
import { anyMethod, malformed } from './malformed.js';
import { oddHeaders } from './odd-headers.js';
import { written, type Draft, type FuzzRequest } from './fuzz-request.js';
import { channelId, hostileTarget } from './targets.js';

const IN_A_ROW = ['/usage', '/health/live', '/nowhere', '/channels/@tidewater/transcripts?limit=1'];

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
      [10, () => malformed(random, this.host, this.authorization())],
      [2, () => this.several()],
      [2, () => this.remaining()],
    ];
    return random.weighted(draw)();
  }

  private fuzzRequest(kind: string, draft: Draft, credential = this.credential(draft.target)): FuzzRequest {
    const { method, target } = draft;
    const own = new Set(draft.headers.map(([name]) => name.toLowerCase()));
    const added: Draft['headers'] = [
      ...(own.has('host') ? [] : [['Host', this.host] as [string, string]]),
      ...credential.headers.map(([name, value]): [string, string] => [name, value]),
      // Repeated authentication failures are limited by address, so most requests use their own address.
      ...(own.has('x-forwarded-for') || this.random.often(0.1)
        ? []
        : [['X-Forwarded-For', this.address()] as [string, string]]),
    ];
    const bytes = written({ ...draft, headers: [...added, ...draft.headers] });
    return { kind, bytes, methods: [method], targets: [target], credential, whole: true, responsesMin: 1 };
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
    const { method, known } = anyMethod(random);
    const target = random.often(0.5)
      ? this.hostile()
      : random.pick([`/channels/${channelId(random)}/transcripts?limit=1`, '/usage', '/', '*']);
    const fuzzRequest = this.fuzzRequest('methods', { method, target, headers: [] });
    return known ? fuzzRequest : { ...fuzzRequest, targets: [], whole: false, disconnects: 'when silent' };
  }

  /** Pipelined requests. */
  private several(): FuzzRequest {
    const credential = this.credential('/usage');
    const fuzzRequests = Array.from({ length: 2 + this.random.below(6) }, () =>
      this.fuzzRequest('', { method: 'GET', target: this.random.pick(IN_A_ROW), headers: [] }, credential),
    );
    return {
      kind: 'pipelined',
      bytes: Buffer.concat(fuzzRequests.map(({ bytes }) => bytes)),
      methods: fuzzRequests.map(() => 'GET'),
      targets: fuzzRequests.flatMap(({ targets = [] }) => targets),
      credential,
      whole: true,
      responsesMin: fuzzRequests.length,
    };
  }

  /** A client that disconnects without waiting. */
  private remaining(): FuzzRequest {
    const target = `/channels/${channelId(this.random)}/transcripts?limit=3`;
    const request = this.fuzzRequest(
      'client disconnects immediately',
      { method: 'GET', target, headers: [] },
      this.credentials.disconnecting,
    );
    return { ...request, responsesMin: 0, disconnects: 'at once' };
  }

  /** Keys of every kind, mostly the valid one. */
  private credential(target: string): Credential {
    const { random, credentials } = this;
    if (random.often(0.4)) return random.pick(credentials.all);
    if (/^\/metrics/i.test(target)) return credentials.metrics;
    return /^\/admin/i.test(target) ? credentials.admin : credentials.pro;
  }

  private authorization(): string {
    return this.random.pick([this.credentials.pro, this.credentials.admin]).headers[0]?.[1] ?? '';
  }

  private hostile(): string {
    return hostileTarget(this.random, this.canary, this.credentials.secrets);
  }

  private address(): string {
    return `10.${this.random.below(256)}.${this.random.below(256)}.${this.random.below(256)}`;
  }
}
