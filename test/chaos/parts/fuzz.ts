import { startStandIn } from '../../fake-youtube/fake-youtube.js';
import { Chance } from '../harness/random.js';
import { Service, type Resources } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { farEnds } from '../harness/sockets.js';
import { atOnce, until } from '../harness/until.js';
import { atMost, equal, nothing, type Part, type Promised, type Torture } from '../chaos-run.js';
import { ApiDocument } from './fuzz/api-document.js';
import type { Known } from './fuzz/by-document.js';
import { makeCredentials, METRICS_TOKEN, type Credentials } from './fuzz/credentials.js';
import { exchange, type Exchange } from './fuzz/exchange.js';
import { Gunner } from './fuzz/load-driver.js';
import { Judge, unprefixed } from './fuzz/response-checks.js';
import { Canary } from './fuzz/canary.js';
import type { Shot } from './fuzz/fuzz-request.js';
import { Tally } from './fuzz/tally.js';

const REQUESTS = 12_000;
const REQUESTS_SHORT = 1_500;
const AT_ONCE = 12;
const DEADLINE_SECONDS = 5;
/** Before the first count of what the process holds, so that all code has run and all pools are filled. */
const WARM_UP_SHARE = 0.25;
const HEAP_GROWTH_MB_MAX = 32;
const LOOK_MS = 500;

/** Any request there is, from what the OpenAPI document describes to bytes that are no HTTP. */
export const fuzz: Part = async (torture) => {
  const { folder, database, seed } = torture;
  const standIn = await startStandIn();
  const canary = await Canary.start();
  const url = await database.create();
  const service = await Service.start(folder, {
    DATABASE_URL: url,
    YOUTUBE_BASE_URL: standIn.url,
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
    const gunner = new Gunner(document, chance, `127.0.0.1:${port}`, canary.address, credentials, known);
    const field: Field = {
      torture,
      service,
      gunner,
      judge: new Judge(document, credentials.secrets),
      tally: new Tally(),
      known,
      port,
    };
    const seen = await fire(field);
    const kinds = [...new Set(standIn.requests.list.map(({ kind }) => kind))];
    const { hostname, port: databasePort } = new URL(url);
    const allowed = new Set([`${hostname}:${databasePort}`, new URL(standIn.url).host]);
    return {
      title: 'Any request',
      text:
        `${seen.shots} connections, ${field.judge.judged} answers: requests drawn from the OpenAPI document and beside it, hostile addresses, ` +
        'headers and methods, framings that two servers could read differently, and bytes that are no HTTP, with keys of ' +
        `${credentials.all.length} kinds. Each answer was held against the schema of its status in the document.`,
      columns: ['sent', 'connections', 'answers', '2xx and 3xx', '4xx', '5xx', 'closed without', 'slowest, ms'],
      rows: field.tally.rows(),
      promised: [
        equal('every connection that was meant was made', seen.shots, shotsOf(torture)),
        ...field.tally.promised(torture.short),
        ...ofAnswers(field.judge, seen),
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
    await standIn.close();
  }
};

interface Field {
  torture: Torture;
  service: Service;
  gunner: Gunner;
  judge: Judge;
  tally: Tally;
  known: Known;
  port: number;
}

interface Seen {
  shots: number;
  hanging: string[];
  miscounted: string[];
  faults: string[];
  ends: Set<string>;
  warm: Resources;
}

function shotsOf({ short }: Torture): number {
  return short ? REQUESTS_SHORT : REQUESTS;
}

async function fire(field: Field): Promise<Seen> {
  const { torture, service, gunner, port } = field;
  const pid = service.program.child.pid ?? 0;
  const ends = new Set<string>();
  const looking = setInterval(() => {
    void farEnds(pid, port).then((seen) => seen?.forEach((end) => ends.add(end)));
  }, LOOK_MS);
  const found = { shots: 0, hanging: [], miscounted: [], faults: [] } as Omit<Seen, 'ends' | 'warm'>;
  const salvo = (count: number): Promise<void> =>
    atOnce(Array.from({ length: count }), AT_ONCE, async () => {
      const shot = gunner.next();
      note(field, found, shot, await exchange(port, shot, (DEADLINE_SECONDS + 1) * 1000));
      if (++found.shots % 3_000 === 0) torture.say(`${found.shots} connections`);
    });
  try {
    const first = Math.floor(shotsOf(torture) * WARM_UP_SHARE);
    await salvo(first);
    await idle(service);
    const warm = await service.resources();
    await salvo(shotsOf(torture) - first);
    return { ...found, ends, warm };
  } finally {
    clearInterval(looking);
  }
}

function note(field: Field, seen: Omit<Seen, 'ends' | 'warm'>, shot: Shot, came: Exchange): void {
  const { judge, tally, known } = field;
  const about = `${shot.kind}: ${JSON.stringify(shot.bytes.subarray(0, 300).toString('latin1'))}`;
  tally.count(shot, came);
  if (came.hanging) seen.hanging.push(`${came.hanging} to ${about}`);
  if (came.fault) seen.faults.push(`${came.fault} to ${about}`);
  const due = shot.answersMin;
  const one = shot.whole && due > 0;
  if (came.answers.length < due || (one && came.answers.length > due))
    seen.miscounted.push(`${came.answers.length} to ${about}`);
  for (const [index, answer] of came.answers.entries()) {
    judge.judge(shot, answer, index);
    if (answer.status !== 201) continue;
    const { id = '' } = JSON.parse(answer.body.toString()) as { id?: string };
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

function ofAnswers({ findings, judged }: Judge, { shots }: Seen): Promised[] {
  return [
    { what: 'nearly every connection had an answer', seen: `${judged} answers`, kept: judged > shots * 0.95 },
    nothing('answers with 500 or above, or with a status that the document does not name', findings.status),
    nothing('bodies that break the schema of their status', findings.schema),
    nothing('answers without an X-Request-Id of plain characters', findings['request id']),
    nothing('answers that repeat a key or a token, or tell of the inside', findings.secret),
    nothing('gates that let the wrong credential pass', findings.gate),
    nothing('bodies that were taken for requests', findings.smuggled),
  ];
}

async function afterwards(
  { torture, service, judge }: Field,
  credentials: Credentials,
  seen: Seen,
): Promise<Promised[]> {
  await idle(service);
  const { customers, secrets } = credentials;
  const fetched = (...names: string[]): number => names.reduce((sum, name) => sum + (judge.fetched.get(name) ?? 0), 0);
  const proNames = credentials.all.map(({ name }) => name).filter((name) => name !== 'exhausted');
  const books = {
    pro: await service.verified(customers.pro.id),
    free: await service.verified(customers.free.id),
    exhausted: await service.verified(customers.exhausted.id),
    leaver: await service.verified(customers.leaver.id),
  };
  torture.say('the books are read');
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
