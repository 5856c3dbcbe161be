import pLimit from 'p-limit';
import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { startReceiver } from '../../webhooks/receiver.js';
import { RandomSource } from '../harness/random.js';
import { parseJson, send, type HttpResponse } from '../../harness/http-request.js';
import { Service } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { at } from '../harness/transcripts.js';
import { equal, nothing, type Part, type Check, type ChaosRun } from '../chaos-run.js';
import { ApiDocument } from './fuzz/api-document.js';
import type { Known } from './fuzz/by-document.js';
import { makeCredentials, METRICS_TOKEN, type Credentials } from './fuzz/credentials.js';
import { LoadDriver } from './fuzz/load-driver.js';
import { ResponseCheck, textOf, unprefixed } from './fuzz/response-checks.js';
import { Canary } from '../harness/canary.js';
import { describe, type FuzzRequest } from './fuzz/fuzz-request.js';

const REQUESTS = 12_000;
const REQUESTS_SHORT = 6_000;
const AT_ONCE = 12;
const DEADLINE_SECONDS = 5;
const LEAVING_MS = 5;
/** Requests with invalid parameters may by chance be all of an operation: of a few, or of half in a short run. */
const NEVER_SUCCEEDED_MAX = 2;
const NEVER_SUCCEEDED_SHORT_MAX = 34;
const STATUSES = [200, 201, 202, 204, 400, 401, 402, 403, 404, 405, 409, 413, 415, 429];

/** Requests of every kind, from those of the OpenAPI document to hostile addresses and headers. */
export const fuzz: Part = async (chaosRun) => {
  const { folder, database } = chaosRun;
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
    // Jobs are created, read and deleted, and none of them runs.
    JOB_CONCURRENCY: '0',
    JOBS_PER_ORGANIZATION: '20',
    // Every webhook has the URL of a receiver on loopback.
    WEBHOOK_ALLOW_PRIVATE: 'true',
    WEBHOOK_SECRET_KEY: 'a-key-for-the-secrets-of-chaos-tests',
  });
  try {
    const credentials = await makeCredentials(service, database, url);
    const document = new ApiDocument((await service.get('/docs-json')).body as never);
    const known: Known = {
      organizations: [],
      keys: [],
      jobs: [],
      subscriptions: [],
      webhooks: [],
      receiver: receiver.url,
    };
    const checks = await fire(chaosRun, service, document, credentials, known, canary.address);
    const kinds = fakeYoutube.requests.list.map(({ kind }) => kind);
    return [
      ...checks,
      equal('connections to the URL in hostile requests', canary.contacts, 0),
      equal('the platform received requests of unknown kinds', kinds.includes('other'), false),
      ...(await settledState(service)),
      ...ofLog(await service.log(), credentials),
      equal('the service exits with 0', await service.stop(), { code: 0, signal: null }),
    ];
  } finally {
    await service.stop('SIGKILL').catch(() => undefined);
    canary.close();
    await receiver.close();
    await fakeYoutube.close();
  }
};

/** Sends the random requests, and checks their responses and that they were random enough. */
async function fire(
  { short, seed, say }: ChaosRun,
  service: Service,
  document: ApiDocument,
  credentials: Credentials,
  known: Known,
  canary: string,
): Promise<Check[]> {
  const random = new RandomSource(seed);
  const loadDriver = new LoadDriver(document, random, new URL(service.url).host, canary, credentials, known);
  const check = new ResponseCheck(document, credentials.secrets);
  const unanswered: string[] = [];
  const statuses = new Set<number>();
  const senders = new Set<string>();
  let requests = 0;
  await pLimit(AT_ONCE).map(Array.from({ length: short ? REQUESTS_SHORT : REQUESTS }), async () => {
    const fuzzRequest = loadDriver.next();
    senders.add(fuzzRequest.credential.name);
    const response = await answerOf(service, fuzzRequest).catch((error: unknown) => String(error));
    if (++requests % 3_000 === 0) say(`${requests} requests`);
    if (fuzzRequest.leaves) return;
    if (typeof response === 'string') {
      unanswered.push(`${response} for ${describe(fuzzRequest)}`);
      return;
    }
    statuses.add(response.status);
    check.check(fuzzRequest, response);
    if ([201, 202].includes(response.status)) remember(known, response);
  });
  const missing = STATUSES.filter((status) => !statuses.has(status));
  const never = check.unsuccessful;
  const neverMax = short ? NEVER_SUCCEEDED_SHORT_MAX : NEVER_SUCCEEDED_MAX;
  const { findings } = check;
  return [
    { name: 'statuses that did not occur', observed: missing.join(), passed: missing.length < (short ? 4 : 1) },
    { name: 'kinds of credentials', observed: String(senders.size), passed: senders.size >= 28 },
    {
      name: 'operations of the document that never succeeded',
      observed: `${[never.length, ...never].join(', ')}; at most ${neverMax}`,
      passed: never.length <= neverMax,
    },
    nothing('responses with 500 or above, or with an undocumented status', findings.status),
    nothing('bodies that violate the schema of their status', findings.schema),
    nothing('responses without an X-Request-Id of plain characters', findings['request id']),
    nothing('responses with a key, a token or internal details', findings.secret),
    nothing('guards that accept a wrong credential', findings.guard),
    nothing('requests without a complete response within their deadline and a second', unanswered),
  ];
}

/** Sends a request on a connection of its own. A client that leaves closes it at once. */
function answerOf({ url }: Service, { method, target, headers, body, leaves }: FuzzRequest): Promise<HttpResponse> {
  // Node writes each character as a byte.
  const path = Buffer.from(target).toString('latin1');
  const written = headers.flatMap(([name, value]) => [name, Buffer.from(value, 'latin1').toString('latin1')]);
  const timeoutMs = leaves ? LEAVING_MS : (DEADLINE_SECONDS + 1) * 1000;
  return send(url, method, path, { headers: written, body, timeoutMs });
}

/** Later requests refer to what a request has created. */
function remember(known: Known, response: HttpResponse): void {
  // A notification to `/mcp` is 202 without a body.
  const id = at(parseJson(textOf(response) ?? ''), 'id');
  if (typeof id !== 'string') return;
  if (id.startsWith('org_')) known.organizations.push(id);
  if (id.startsWith('key_')) known.keys.push(id);
  if (id.startsWith('job_')) known.jobs.push(id);
  if (id.startsWith('sub_')) known.subscriptions.push(id);
  if (id.startsWith('whk_')) known.webhooks.push(id);
}

function ofLog(log: string, { secrets }: Credentials): Check[] {
  return [
    equal('secrets in the log', secrets.filter((secret) => log.includes(unprefixed(secret))).length, 0),
    equal('bugs in the log', log.split('\n').filter((line) => line.includes('"event":"bug"')).length, 0),
  ];
}
