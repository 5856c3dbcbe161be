import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { Chance } from '../harness/random.js';
import { Service, type Resources } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { farEnds } from '../harness/sockets.js';
import { atOnce, until } from '../harness/until.js';
import { atMost, equal, nothing, type Part, type Promised, type ChaosRun } from '../chaos-run.js';
import { ApiDocument } from './fuzz/api-document.js';
import type { Known } from './fuzz/by-document.js';
import { makeCredentials, METRICS_TOKEN, type Credentials } from './fuzz/credentials.js';
import { exchange, type Exchange } from './fuzz/exchange.js';
import { LoadDriver } from './fuzz/load-driver.js';
import { ResponseCheck, unprefixed } from './fuzz/response-checks.js';
import { Canary } from './fuzz/canary.js';
import type { FuzzRequest } from './fuzz/fuzz-request.js';
import { StatusCounts } from './fuzz/tally.js';

const REQUESTS = 12_000;
const REQUESTS_SHORT = 1_500;
const AT_ONCE = 12;
const DEADLINE_SECONDS = 5;
/** Before the first count of what the process holds, so that all code has run and all pools are filled. */
const WARM_UP_SHARE = 0.25;
const HEAP_GROWTH_MB_MAX = 32;
const LOOK_MS = 500;

/** Any request there is, from what the OpenAPI document describes to bytes that are no HTTP. */
export const fuzz: Part = async (chaosRun) => {
  const { folder, database, seed } = chaosRun;
  const fakeYoutube = await startFakeYoutube();
  const canary = await Canary.start();
  const url = await database.create();
  const service = await Service.start(folder, {
    DATABASE_URL: url,
    YOUTUBE_BASE_URL: fakeYoutube.url,
    REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
    METRICS_TOKEN,
    TRUST_PROXY: 'loopback',
    CORS_ORIGINS: 'https://app.example.com',
  });
  try {
    const credentials = await makeCredentials(service, database, url);
    const document = new ApiDocument((await service.get('/docs-json')).body as never);
    const known: Known = { organizations: [], keys: [] };
    const port = Number(new URL(service.url).port);
    const chance = new Chance(seed);
    const loadDriver = new LoadDriver(document, chance, `127.0.0.1:${port}`, canary.address, credentials, known);
    const field: Field = {
      chaosRun,
      service,
      loadDriver,
      check: new ResponseCheck(document, credentials.secrets),
      counts: new StatusCounts(),
      known,
      port,
    };
    const seen = await fire(field);
    const kinds = [...new Set(fakeYoutube.requests.list.map(({ kind }) => kind))];
    const { hostname, port: databasePort } = new URL(url);
    const allowed = new Set([`${hostname}:${databasePort}`, new URL(fakeYoutube.url).host]);
    return {
      title: 'Any request',
      text:
        `${seen.fuzzRequests} connections, ${field.check.checked} answers: requests drawn from the OpenAPI document and beside it, hostile addresses, ` +
        'headers and methods, framings that two servers could read differently, and bytes that are no HTTP, with keys of ' +
        `${credentials.all.length} kinds. Each answer was held against the schema of its status in the document.`,
      columns: ['sent', 'connections', 'answers', '2xx and 3xx', '4xx', '5xx', 'closed without', 'slowest, ms'],
      rows: field.counts.rows(),
      promised: [
        equal('every connection that was meant was made', seen.fuzzRequests, fuzzRequestsOf(chaosRun)),
        ...field.counts.promised(chaosRun.short),
        ...ofResponses(field.check, seen),
        nothing(
          'an answer of a whole request takes at most its deadline and a second, and no connection is left hanging',
          seen.hanging,
        ),
        nothing('a whole request has exactly one answer', seen.miscounted),
        nothing('what comes back is HTTP', seen.faults),
        equal('connections to the address that stood in hostile requests', canary.contacts, 0),
        nothing(
          'connections to anything but the platform and the database',
          [...seen.ends].filter((end) => !allowed.has(end)),
        ),
        equal('requests to the platform of a kind that it does not have', kinds.includes('other'), false),
        ...(await afterwards(field, credentials, seen)),
      ],
    };
  } finally {
    await service.stop('SIGKILL').catch(() => undefined);
    canary.close();
    await fakeYoutube.close();
  }
};

interface Field {
  chaosRun: ChaosRun;
  service: Service;
  loadDriver: LoadDriver;
  check: ResponseCheck;
  counts: StatusCounts;
  known: Known;
  port: number;
}

interface Seen {
  fuzzRequests: number;
  hanging: string[];
  miscounted: string[];
  faults: string[];
  ends: Set<string>;
  warm: Resources;
}

function fuzzRequestsOf({ short }: ChaosRun): number {
  return short ? REQUESTS_SHORT : REQUESTS;
}

async function fire(field: Field): Promise<Seen> {
  const { chaosRun, service, loadDriver, port } = field;
  const pid = service.program.child.pid ?? 0;
  const ends = new Set<string>();
  const looking = setInterval(() => {
    void farEnds(pid, port).then((seen) => seen?.forEach((end) => ends.add(end)));
  }, LOOK_MS);
  const found = { fuzzRequests: 0, hanging: [], miscounted: [], faults: [] } as Omit<Seen, 'ends' | 'warm'>;
  const salvo = (count: number): Promise<void> =>
    atOnce(Array.from({ length: count }), AT_ONCE, async () => {
      const fuzzRequest = loadDriver.next();
      note(field, found, fuzzRequest, await exchange(port, fuzzRequest, (DEADLINE_SECONDS + 1) * 1000));
      if (++found.fuzzRequests % 3_000 === 0) chaosRun.say(`${found.fuzzRequests} connections`);
    });
  try {
    const first = Math.floor(fuzzRequestsOf(chaosRun) * WARM_UP_SHARE);
    await salvo(first);
    await idle(service);
    const warm = await service.resources();
    await salvo(fuzzRequestsOf(chaosRun) - first);
    return { ...found, ends, warm };
  } finally {
    clearInterval(looking);
  }
}

function note(field: Field, seen: Omit<Seen, 'ends' | 'warm'>, fuzzRequest: FuzzRequest, came: Exchange): void {
  const { check, counts, known } = field;
  const about = `${fuzzRequest.kind}: ${JSON.stringify(fuzzRequest.bytes.subarray(0, 300).toString('latin1'))}`;
  counts.count(fuzzRequest, came);
  if (came.hanging) seen.hanging.push(`${came.hanging} to ${about}`);
  if (came.fault) seen.faults.push(`${came.fault} to ${about}`);
  const due = fuzzRequest.responsesMin;
  const one = fuzzRequest.whole && due > 0;
  if (came.responses.length < due || (one && came.responses.length > due))
    seen.miscounted.push(`${came.responses.length} to ${about}`);
  for (const [index, response] of came.responses.entries()) {
    check.check(fuzzRequest, response, index);
    if (response.status !== 201) continue;
    const { id = '' } = JSON.parse(response.body.toString()) as { id?: string };
    if (id.startsWith('org_')) known.organizations.push(id);
    if (id.startsWith('key_')) known.keys.push(id);
  }
}

/** Until no call is in flight and no caller is connected. */
async function idle(service: Service): Promise<void> {
  await until('The service is at rest', async () => {
    const { text } = await service.get('/metrics', METRICS_TOKEN);
    return /^ct_calls_in_flight 0$/m.test(text) && /^ct_upstream_requests_in_flight 0$/m.test(text);
  });
}

function ofResponses({ findings, checked }: ResponseCheck, { fuzzRequests }: Seen): Promised[] {
  return [
    { what: 'nearly every connection had an answer', seen: `${checked} answers`, held: checked > fuzzRequests * 0.95 },
    nothing('answers with 500 or above, or with a status that the document does not name', findings.status),
    nothing('bodies that break the schema of their status', findings.schema),
    nothing('answers without an X-Request-Id of plain characters', findings['request id']),
    nothing('answers that repeat a key or a token, or tell of the inside', findings.secret),
    nothing('gates that let the wrong credential pass', findings.gate),
    nothing('bodies that were taken for requests', findings.smuggled),
  ];
}

async function afterwards(
  { chaosRun, service, check }: Field,
  credentials: Credentials,
  seen: Seen,
): Promise<Promised[]> {
  await idle(service);
  const { customers, secrets } = credentials;
  const fetched = (...names: string[]): number => names.reduce((sum, name) => sum + (check.fetched.get(name) ?? 0), 0);
  const proNames = credentials.all.map(({ name }) => name).filter((name) => name !== 'exhausted');
  const books = {
    pro: await service.verified(customers.pro.id),
    free: await service.verified(customers.free.id),
    exhausted: await service.verified(customers.exhausted.id),
    leaver: await service.verified(customers.leaver.id),
  };
  chaosRun.say('the books are read');
  let after = await service.resources();
  const more = (): string[] =>
    Object.entries(after.held).flatMap(([name, count]) =>
      /Socket|Server|Pipe|FileHandle|FSReq/.test(name) && count > (seen.warm.held[name] ?? 0)
        ? [`${name} ${count} instead of ${seen.warm.held[name] ?? 0}`]
        : [],
    );
  await until(
    'Its connections are closed',
    async () => (after = await service.resources()) && more().length === 0,
  ).catch(() => undefined);
  const log = await service.log();
  return [
    equal(
      '`usage --verify` agrees for every customer',
      Object.values(books).every(({ exact }) => exact),
      true,
    ),
    equal('what was charged is what the answers said was fetched', books.pro.used, fetched(...proNames)),
    equal('charged to the free and the exhausted organization', books.free.used + books.exhausted.used, 0),
    equal(
      'reserved at the end',
      Object.values(books).reduce((sum, { reserved }) => sum + reserved, 0),
      0,
    ),
    equal('the process has ended', service.program.hasEnded, false),
    nothing('more connections or files held than after the first quarter', more()),
    atMost(
      'heap above that after the first quarter',
      (after.heapUsed - seen.warm.heapUsed) / 2 ** 20,
      HEAP_GROWTH_MB_MAX,
      'MB',
    ),
    equal('secrets in the log', secrets.filter((secret) => log.includes(unprefixed(secret))).length, 0),
    equal('bugs in the log', log.split('\n').filter((line) => line.includes('"event":"bug"')).length, 0),
    ...(await settledState(service)),
    equal('it ends with 0', await service.stop(), { code: 0, signal: null }),
  ];
}
