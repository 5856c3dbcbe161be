import type { Chance } from '../../harness/random.js';
import type { ApiDocument } from './api-document.js';
import { ByDocument, type Known } from './by-document.js';
import type { Credential, Credentials } from './credentials.js';
import { anyMethod, malformed } from './malformed.js';
import { oddHeaders } from './odd-headers.js';
import { written, type Draft, type FuzzRequest } from './fuzz-request.js';
import { channelId, hostileTarget } from './targets.js';

const IN_A_ROW = ['/usage', '/health/live', '/nowhere', '/channels/@tidewater/transcripts?limit=1'];

/** Draws one shot after the other. */
export class LoadDriver {
  private readonly byDocument: ByDocument;

  constructor(
    document: ApiDocument,
    private readonly chance: Chance,
    private readonly host: string,
    private readonly canary: string,
    private readonly credentials: Credentials,
    known: Known,
  ) {
    this.byDocument = new ByDocument(document, chance, canary, known);
  }

  next(): FuzzRequest {
    const { chance } = this;
    const draw: [number, () => FuzzRequest][] = [
      [40, () => this.fuzzRequest('by the document', this.byDocument.draft())],
      [22, () => this.fuzzRequest('hostile addresses', { method: 'GET', target: this.hostile(), headers: [] })],
      [16, () => this.withOddHeaders()],
      [8, () => this.withAnyMethod()],
      [10, () => malformed(chance, this.host, this.authorization())],
      [2, () => this.several()],
      [2, () => this.remaining()],
    ];
    return chance.weighted(draw)();
  }

  private fuzzRequest(kind: string, draft: Draft, credential = this.credential(draft.target)): FuzzRequest {
    const { method, target } = draft;
    const own = new Set(draft.headers.map(([name]) => name.toLowerCase()));
    const added: Draft['headers'] = [
      ...(own.has('host') ? [] : [['Host', this.host] as [string, string]]),
      ...credential.headers.map(([name, value]): [string, string] => [name, value]),
      // Whoever keeps failing to authenticate is refused by address, so that most come from an address of their own.
      ...(own.has('x-forwarded-for') || this.chance.often(0.1)
        ? []
        : [['X-Forwarded-For', this.address()] as [string, string]]),
    ];
    const bytes = written({ ...draft, headers: [...added, ...draft.headers] });
    return { kind, bytes, methods: [method], targets: [target], credential, whole: true, responsesMin: 1 };
  }

  private withOddHeaders(): FuzzRequest {
    const { chance } = this;
    const draft: Draft = chance.often(0.5)
      ? this.byDocument.draft()
      : {
          method: 'GET',
          target: chance.pick(['/usage', '/docs', '/docs/swagger-ui.css', '/health/live', '/metrics', '/docs-json']),
          headers: [],
        };
    const odd = oddHeaders(chance, this.canary, this.credentials.secrets);
    return this.fuzzRequest('odd headers', { ...draft, headers: [...draft.headers, ...odd] });
  }

  private withAnyMethod(): FuzzRequest {
    const { chance } = this;
    const { method, known } = anyMethod(chance);
    const target = chance.often(0.5)
      ? this.hostile()
      : chance.pick([`/channels/${channelId(chance)}/transcripts?limit=1`, '/usage', '/', '*']);
    const fuzzRequest = this.fuzzRequest('methods', { method, target, headers: [] });
    return known ? fuzzRequest : { ...fuzzRequest, targets: [], whole: false, disconnects: 'when silent' };
  }

  /** Requests in a row, without waiting for the answers. */
  private several(): FuzzRequest {
    const credential = this.credential('/usage');
    const fuzzRequests = Array.from({ length: 2 + this.chance.below(6) }, () =>
      this.fuzzRequest('', { method: 'GET', target: this.chance.pick(IN_A_ROW), headers: [] }, credential),
    );
    return {
      kind: 'in a row',
      bytes: Buffer.concat(fuzzRequests.map(({ bytes }) => bytes)),
      methods: fuzzRequests.map(() => 'GET'),
      targets: fuzzRequests.flatMap(({ targets = [] }) => targets),
      credential,
      whole: true,
      responsesMin: fuzzRequests.length,
    };
  }

  /** A caller who does not wait. */
  private remaining(): FuzzRequest {
    const target = `/channels/${channelId(this.chance)}/transcripts?limit=3`;
    const shot = this.fuzzRequest(
      'left at once',
      { method: 'GET', target, headers: [] },
      this.credentials.disconnecting,
    );
    return { ...shot, responsesMin: 0, disconnects: 'at once' };
  }

  /** Keys of every kind, and mostly the one that gets somewhere. */
  private credential(target: string): Credential {
    const { chance, credentials } = this;
    if (chance.often(0.4)) return chance.pick(credentials.all);
    return /^\/admin/i.test(target) ? credentials.admin : credentials.pro;
  }

  private authorization(): string {
    return this.chance.pick([this.credentials.pro, this.credentials.admin]).headers[0]?.[1] ?? '';
  }

  private hostile(): string {
    return hostileTarget(this.chance, this.canary, this.credentials.secrets);
  }

  private address(): string {
    return `10.${this.chance.below(256)}.${this.chance.below(256)}.${this.chance.below(256)}`;
  }
}
