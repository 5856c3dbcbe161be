import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { startReceiver } from '../../webhooks/receiver.js';
import { RandomSource } from '../harness/random.js';
import { ledgerOf } from '../harness/ledger.js';
import { parsed, send, Service, type ServiceResponse } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { at } from '../harness/transcripts.js';
import { atOnce, until } from '../harness/until.js';
import { equal, nothing, type Part, type Check, type ChaosRun } from '../chaos-run.js';
import { ApiDocument } from './fuzz/api-document.js';
import type { Known } from './fuzz/by-document.js';
import { makeCredentials, METRICS_TOKEN, type Credentials } from './fuzz/credentials.js';
import { LoadDriver } from './fuzz/load-driver.js';
import { ResponseCheck, textOf, unprefixed } from './fuzz/response-checks.js';
import { Canary } from '../harness/canary.js';
import { describe, type FuzzRequest } from './fuzz/fuzz-request.js';

const REQUESTS = 12_000;
const REQUESTS_SHORT = 1_500;
const AT_ONCE = 12;
const DEADLINE_SECONDS = 5;
const LEAVING_MS = 5;
/** Requests with invalid parameters may by chance be all of an operation: of a few, or of half in a short run. */
const NEVER_SUCCEEDED_MAX = 2;
const NEVER_SUCCEEDED_SHORT_MAX = 18;
const STATUSES = [200, 201, 202, 204, 400, 401, 402, 403, 404, 405, 409, 413, 415, 429];

/** Requests of every kind, from those of the OpenAPI document to hostile addresses and headers. */
export const fuzz: Part = async (chaosRun) => {
  const { folder, database, seed } = chaosRun;
  const fakeYoutube = await startFakeYoutube();
  const canary = await Canary.start();
  const receiver = await startReceiver();
  const url = await database.create();
  const service = await Service.start(folder, {
    DATABASE_URL: url,
    YOUTUBE_BASE_URL: fakeYoutube.url,
    REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
    METRICS_TOKEN,
    TRUST_PROXY: 'loopback',
    CORS_ORIGINS: 'https://app.example.com',
    // Jobs are created, read and deleted, and none of them runs: what a deleted job has fetched is in no response.
    JOB_CONCURRENCY: '0',
    JOBS_PER_ORGANIZATION: '20',
    // Every webhook has the URL of a receiver on loopback.
    WEBHOOK_ALLOW_PRIVATE: 'true',
    WEBHOOK_SECRET_KEY: 'a-key-for-the-secrets-of-chaos-tests',
  });
  try {
    const credentials = await makeCredentials(service, database, url);
    const document = new ApiDocument((await service.get('/docs-json')).body as never);
    const known: Known = { organizations: [], keys: [], jobs: [], webhooks: [], receiver: receiver.url };
    const random = new RandomSource(seed);
    const loadDriver = new LoadDriver(document, random, new URL(service.url).host, canary.address, credentials, known);
    const field: Field = {
      chaosRun,
      service,
      loadDriver,
      check: new ResponseCheck(document, credentials.secrets),
      known,
    };
    const seen = await fire(field);
    const kinds = [...new Set(fakeYoutube.requests.list.map(({ kind }) => kind))];
    return [
      equal('all planned requests were sent', seen.requests, requestsOf(chaosRun)),
      ...coverage(seen, chaosRun),
      succeeded(field.check.unsuccessful(), chaosRun),
      ...ofResponses(field.check),
      nothing('requests without a complete response within their deadline and a second', seen.unanswered),
      equal('connections to the URL in hostile requests', canary.contacts, 0),
      equal('the platform received requests of unknown kinds', kinds.includes('other'), false),
      ...(await afterwards(field, credentials)),
    ];
  } finally {
    await service.stop('SIGKILL').catch(() => undefined);
    canary.close();
    await receiver.close();
    await fakeYoutube.close();
  }
};

interface Field {
  chaosRun: ChaosRun;
  service: Service;
  loadDriver: LoadDriver;
  check: ResponseCheck;
  known: Known;
}

interface Seen {
  requests: number;
  /** Requests without a response, although their client waited. */
  unanswered: string[];
  readonly statuses: Set<number>;
  /** The names of those that were sent. */
  readonly credentials: Set<string>;
}

function requestsOf({ short }: ChaosRun): number {
  return short ? REQUESTS_SHORT : REQUESTS;
}

async function fire(field: Field): Promise<Seen> {
  const { chaosRun, loadDriver, service } = field;
  const seen: Seen = { requests: 0, unanswered: [], statuses: new Set(), credentials: new Set() };
  await atOnce(Array.from({ length: requestsOf(chaosRun) }), AT_ONCE, async () => {
    const fuzzRequest = loadDriver.next();
    note(field, seen, fuzzRequest, await answerOf(service, fuzzRequest).catch((error: unknown) => String(error)));
    if (++seen.requests % 3_000 === 0) chaosRun.say(`${seen.requests} requests`);
  });
  return seen;
}

/** Sends a request on a connection of its own. A client that leaves closes it at once. */
function answerOf({ url }: Service, { method, target, headers, body, leaves }: FuzzRequest): Promise<ServiceResponse> {
  // Node writes each character as a byte.
  const path = Buffer.from(target).toString('latin1');
  const written = headers.flatMap(([name, value]) => [name, Buffer.from(value, 'latin1').toString('latin1')]);
  return send(url, method, path, written, leaves ? LEAVING_MS : (DEADLINE_SECONDS + 1) * 1000, body);
}

/** @param response or why there is none */
function note({ check, known }: Field, seen: Seen, fuzzRequest: FuzzRequest, response: ServiceResponse | string): void {
  seen.credentials.add(fuzzRequest.credential.name);
  if (typeof response === 'string') {
    if (!fuzzRequest.leaves) seen.unanswered.push(`${response} for ${describe(fuzzRequest)}`);
    return;
  }
  seen.statuses.add(response.status);
  check.check(fuzzRequest, response);
  // A notification to `/mcp` is 202 without a body.
  const id = [201, 202].includes(response.status) ? at(parsed(textOf(response) ?? ''), 'id') : undefined;
  if (typeof id !== 'string') return;
  if (id.startsWith('org_')) known.organizations.push(id);
  if (id.startsWith('key_')) known.keys.push(id);
  if (id.startsWith('job_')) known.jobs.push(id);
  if (id.startsWith('whk_')) known.webhooks.push(id);
}

/** Waits until no call is in flight and no client is connected. */
async function idle(service: Service): Promise<void> {
  await until('The service is at rest', async () => {
    const { text } = await service.get('/metrics', METRICS_TOKEN);
    return /^ct_calls_in_flight 0$/m.test(text) && /^ct_upstream_requests_in_flight 0$/m.test(text);
  });
}

/** Whether the random requests had the intended statuses and credentials. */
function coverage({ statuses, credentials }: Seen, { short }: ChaosRun): Check[] {
  const missing = STATUSES.filter((status) => !statuses.has(status));
  return [
    { name: 'statuses that did not occur', observed: missing.join(), passed: missing.length < (short ? 4 : 1) },
    { name: 'kinds of credentials', observed: String(credentials.size), passed: credentials.size >= 28 },
  ];
}

/** Requests of each operation must have valid parameters often enough, and refer to objects that exist. */
function succeeded(never: readonly string[], { short }: ChaosRun): Check {
  const most = short ? NEVER_SUCCEEDED_SHORT_MAX : NEVER_SUCCEEDED_MAX;
  return {
    name: 'operations of the document that never succeeded',
    observed: `${[never.length, ...never].join(', ')}; at most ${most}`,
    passed: never.length <= most,
  };
}

function ofResponses({ findings }: ResponseCheck): Check[] {
  return [
    nothing('responses with 500 or above, or with an undocumented status', findings.status),
    nothing('bodies that violate the schema of their status', findings.schema),
    nothing('responses without an X-Request-Id of plain characters', findings['request id']),
    nothing('responses with a key, a token or internal details', findings.secret),
    nothing('guards that accept a wrong credential', findings.guard),
  ];
}

async function afterwards({ service, check }: Field, credentials: Credentials): Promise<Check[]> {
  await idle(service);
  const { customers, secrets } = credentials;
  const ofNames = (counts: ReadonlyMap<string, number>, names: readonly string[]): number =>
    names.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0);
  const proNames = credentials.all.map(({ name }) => name).filter((name) => !['exhausted', 'free'].includes(name));
  const charges: Check[] = [];
  for (const [whose, names] of [
    ['pro', proNames],
    ['free', ['free']],
    ['exhausted', []],
  ] as const) {
    const { used } = await ledgerOf(service, customers[whose].id);
    const least = ofNames(check.fetched, names);
    const due = Math.min(Math.max(used, least), least + ofNames(check.possiblyFetched, names));
    charges.push(equal(`transcripts charged to the organization ${whose}, equal to those in its responses`, used, due));
  }
  const log = await service.log();
  return [
    ...charges,
    equal('secrets in the log', secrets.filter((secret) => log.includes(unprefixed(secret))).length, 0),
    equal('bugs in the log', log.split('\n').filter((line) => line.includes('"event":"bug"')).length, 0),
    ...(await settledState(service)),
    equal('the service exits with 0', await service.stop(), { code: 0, signal: null }),
  ];
}
