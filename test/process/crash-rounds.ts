import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { CliSession } from '../admin/run-cli.js';
import { type Customer, QuotaDatabase } from '../quota/quota-database.js';
import { Program } from './program.js';

const CALLS_AT_ONCE = 4;
const VIDEOS_PER_CALL = 6;
const REQUIRED = CALLS_AT_ONCE * VIDEOS_PER_CALL;
/** Makes a call take some hundred milliseconds, so that a kill can hit the middle of it. */
const UPSTREAM_LATENCY_MS = 20;
const UPSTREAM_CONCURRENCY = 4;
const DEADLINE_SECONDS = 5;
/** The deadline, the 15 seconds that a lease lasts longer, and one more. */
const LEASE_OVER_SECONDS = DEADLINE_SECONDS + 15 + 1;

/** The state after one kill -9. */
interface CrashRound {
  /** How long after the calls were sent. */
  killedAfterMs: number;
  /** Transcripts in complete responses before the kill. */
  responded: number;
  /** Charged in this round. */
  charged: number;
  /** Transcripts requested from the fake YouTube in this round: the upper limit of what was fetched. */
  requestedFor: number;
  /** Reserved by the killed process, before and after its leases have ended. */
  reservedAfterKill: number;
  reservedAfterLease: number;
  /** Exit code and result of `usage ORG --verify`. */
  verifyExitCode: unknown;
  exact: boolean;
}

/** Kills the service with kill -9 at random points of its calls, one in each part of their duration, on one database. */
export class CrashRounds {
  private channels = 0;
  private clockSeconds = 0;
  /** The duration of the calls without a kill. */
  private undisturbedMs = 0;

  private constructor(
    private readonly database: QuotaDatabase,
    private readonly fakeYoutube: FakeYoutube,
    private readonly customer: Customer,
    private readonly key: string,
    private readonly commands: CliSession,
  ) {}

  /** Measures the duration of the calls, and then kills the service `rounds` times: in the first part of it, in the second, … */
  static async run(rounds: number): Promise<CrashRound[]> {
    const database = await QuotaDatabase.open();
    const fakeYoutube = await startFakeYoutube({ latencyMs: UPSTREAM_LATENCY_MS });
    const commands = new CliSession();
    try {
      const customer = await database.newCustomer(1_000_000);
      const { key } = await database.keys.issue(customer);
      const crashes = new CrashRounds(database, fakeYoutube, customer, key, commands);
      await crashes.measure();
      const done: CrashRound[] = [];
      while (done.length < rounds) done.push(await crashes.round((done.length + Math.random()) / rounds));
      return done;
    } finally {
      commands.close();
      await fakeYoutube.close();
      await database.close();
    }
  }

  /** @param share of the duration after which the service is killed */
  private async round(share: number): Promise<CrashRound> {
    const before = await this.charged();
    const requestedBefore = this.fakeYoutube.requests.count({ kind: 'timedtext' });
    const killedAfterMs = Math.floor(share * this.undisturbedMs);
    const { service, url } = await this.start();
    const calls = this.call(url);
    await sleep(killedAfterMs);
    await service.stop('SIGKILL');
    const responded = (await calls).reduce((sum, fetched) => sum + fetched, 0);
    const { reserved: reservedAfterKill } = await this.database.quota.usage(this.customer.organizationId);
    await this.passLeases();
    const verified = await this.commands.run(['usage', this.customer.organizationId, '--verify', '--json'], {
      DATABASE_URL: this.database.url,
    });
    const { reserved, verification } = JSON.parse(verified.output) as {
      reserved: number;
      verification: { exact: boolean };
    };
    return {
      killedAfterMs,
      responded,
      charged: (await this.charged()) - before,
      requestedFor: this.fakeYoutube.requests.count({ kind: 'timedtext' }) - requestedBefore,
      reservedAfterKill,
      reservedAfterLease: reserved,
      verifyExitCode: verified.code,
      exact: verification.exact,
    };
  }

  private async measure(): Promise<void> {
    const { service, url } = await this.start();
    const begunAtMs = performance.now();
    const fetched = await this.call(url);
    this.undisturbedMs = performance.now() - begunAtMs;
    await service.stop();
    const total = fetched.reduce((sum, count) => sum + count, 0);
    if (total !== REQUIRED) throw new Error(`The undisturbed calls fetched ${total} of ${REQUIRED}.`);
  }

  private async start(): Promise<{ service: Program; url: string }> {
    const service = Program.run('main.js', {
      DATABASE_URL: this.database.url,
      YOUTUBE_BASE_URL: this.fakeYoutube.url,
      REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
      UPSTREAM_CONCURRENCY: String(UPSTREAM_CONCURRENCY),
      RATE_LIMIT_PER_MINUTE: '0',
    });
    return { service, url: await service.url() };
  }

  /** What each of several calls at once has fetched; 0 for one that was cut off. */
  private call(url: string): Promise<number[]> {
    return Promise.all(
      Array.from({ length: CALLS_AT_ONCE }, async () => {
        const path = `/channels/@bench-${VIDEOS_PER_CALL}x${(this.channels += 1)}/transcripts`;
        try {
          const response = await fetch(url + path, { headers: { Authorization: `Bearer ${this.key}` } });
          return ((await response.json()) as { summary: { fetched: number } }).summary.fetched;
        } catch {
          return 0;
        }
      }),
    );
  }

  /** Over all months, since one can end in between. */
  private async charged(): Promise<number> {
    const { periods } = await this.database.quota.verify(this.customer.organizationId);
    return periods.reduce((sum, { used }) => sum + used, 0);
  }

  /** Advances the quota's clock past the leases. */
  private async passLeases(): Promise<void> {
    this.clockSeconds += LEASE_OVER_SECONDS;
    await this.database.dataSource.query(`
      CREATE OR REPLACE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        'SELECT clock_timestamp() + make_interval(secs => ${this.clockSeconds})'`);
  }
}

/** The violated guarantees of a round. */
export function faultsOf(round: CrashRound): string[] {
  const rules: [boolean, string][] = [
    [round.verifyExitCode === 0 && round.exact, 'usage --verify is not exact'],
    [round.reservedAfterLease === 0, 'a reservation outlives its lease'],
    [round.charged >= round.responded, 'a complete response was not charged'],
    [round.charged <= round.requestedFor, 'more was charged than was fetched'],
    [round.charged + round.reservedAfterKill <= REQUIRED, 'more is charged or reserved than was requested'],
  ];
  return rules.flatMap(([holds, fault]) => (holds ? [] : [`${fault}: ${JSON.stringify(round)}`]));
}
