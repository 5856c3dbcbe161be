import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube, type FakeYoutube } from '../../fake-youtube/fake-youtube.js';
import type { HttpResponse } from '../../harness/http-request.js';
import { type Database, startDatabase } from '../harness/database.js';
import { ledgerOf, verifiedLedger } from '../harness/ledger.js';
import { type Customer, Service } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { brokenIdentities, codeOf, readTranscripts } from '../harness/transcripts.js';
import { measureInTime, type Measurements } from '../../harness/until.js';
import { until } from '../harness/until.js';
import { atMost, equal, nothing, type Part, type Check } from '../chaos-run.js';
import { databaseFaults, type DatabaseFault } from './database/faults.js';
import { type Phase, phasesOf } from './database/phases.js';

const DEADLINE_SECONDS = 5;
const REFUSED_WITHIN_MS = 2_000;
const RECOVERED_WITHIN_MS = 10_000;
const VIDEOS = 3;
/** Less than the lease of an orphaned reservation: the call's deadline and 15 seconds. */
const SETTLED_WITHIN_MS = 12_000;

interface CellEnd {
  /** From the fault, or the later call, to the end of the call. */
  endedMs: number;
  refused: boolean;
  recoveredMs: number;
  wrong: string[];
}

function isInTime({ refused, endedMs, recoveredMs }: CellEnd): boolean {
  return (!refused || endedMs <= REFUSED_WITHIN_MS) && recoveredMs <= RECOVERED_WITHIN_MS;
}

/** Every fault of the database at every point of a call. */
export const database: Part = async (chaosRun) => {
  const own = await startDatabase(chaosRun.folder, 'postgres-in-trouble', ['fsync=off', 'max_connections=40']);
  const fakeYoutube = await startFakeYoutube({ seed: chaosRun.seed });
  let service: Service | undefined;
  try {
    const url = await own.create();
    service = await Service.start(chaosRun.folder, {
      DATABASE_URL: url,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
    });
    const faults = new DatabaseFaults(own, fakeYoutube, service, await service.customer(), url);
    return await faults.run(chaosRun.short, chaosRun.say);
  } finally {
    await own.thaw();
    await service?.stop();
    await fakeYoutube.close();
    await own.stop();
  }
};

class DatabaseFaults {
  private calls = 0;
  private fetched = 0;

  constructor(
    private readonly database: Database,
    private readonly fakeYoutube: FakeYoutube,
    private readonly service: Service,
    private readonly customer: Customer,
    private readonly url: string,
  ) {}

  async run(short: boolean, say: (line: string) => void): Promise<Check[]> {
    const faults = databaseFaults(this.database, this.url);
    const phases = phasesOf(this.database, this.url, this.fakeYoutube, this.customer.id);
    const cells = faults.flatMap((fault) => phases.map((phase) => ({ fault, phase })));
    const chosen = short ? cells.filter((_cell, index) => index % (phases.length + 1) === 0) : cells;
    await this.recovered();
    const measured: Measurements<CellEnd>[] = [];
    for (const { fault, phase } of chosen) {
      measured.push(await measureInTime(() => this.cell(fault, phase), isInTime));
      say(`${fault.name} ${phase.name}`);
    }
    return this.report(measured);
  }

  /** One call with a fault at one point; then the fault ends, and the usage is checked. */
  private async cell(fault: DatabaseFault, phase: Phase): Promise<CellEnd> {
    this.fakeYoutube.reset();
    const stand = await phase.prepare();
    const wrong: string[] = [];
    let startedAtMs = performance.now();
    const make = (): Promise<HttpResponse> => {
      startedAtMs = performance.now();
      return this.call();
    };
    const whole = phase.name === 'after' ? await make() : undefined;
    const running = whole ?? (phase.name === 'before' ? undefined : make());
    await stand.arrived();
    const struckAtMs = performance.now();
    await fault.strike();
    const responding = Promise.resolve(running ?? make());
    // Lock waits and held platform requests are released once the fault is active.
    await stand.release();
    const [response] = await Promise.all([responding, sleep(fault.lastsMs)]);
    const endedMs = startedAtMs + response.ms - Math.max(startedAtMs, struckAtMs);
    const requested = this.fakeYoutube.requests.count({ kind: 'timedtext' });
    await fault.heal();
    const healedAtMs = performance.now();
    const reported = readTranscripts(response);
    if (reported && response.status === 200) {
      this.fetched += reported.summary.fetched;
      wrong.push(...brokenIdentities(reported));
      if (reported.summary.fetched !== VIDEOS) wrong.push(`fetched ${reported.summary.fetched} of ${VIDEOS}`);
      if (fault.isOutage && phase.refusable) wrong.push('succeeded although the database was unavailable');
    } else {
      if (response.status !== 503 || codeOf(response) !== 'service_unavailable') {
        wrong.push(`responded ${response.status} ${codeOf(response)}${response.whole ? '' : ', cut short'}`);
      }
      if (response.headers['retry-after'] === undefined) wrong.push('refused without Retry-After');
      if (!phase.refusable) wrong.push('refused after it was granted');
      if (requested > 0) wrong.push(`${requested} texts were fetched without a reservation`);
    }
    await this.recovered();
    const recoveredMs = performance.now() - healedAtMs;
    wrong.push(...(await this.accounts()));
    return {
      endedMs,
      refused: response.status !== 200,
      recoveredMs,
      wrong: wrong.map((what) => `${fault.name} ${phase.name}: ${what}`),
    };
  }

  /** Each for a channel that is not cached. */
  private call(): Promise<HttpResponse> {
    this.calls += 1;
    return this.service.get(`/channels/@${VIDEOS}-videos-no-${this.calls}/transcripts`, this.customer.key, 60_000);
  }

  private async recovered(): Promise<void> {
    await until('The service responds again', async () => {
      const reported = readTranscripts(await this.call());
      this.fetched += reported?.summary.fetched ?? 0;
      return reported?.summary.fetched === VIDEOS;
    });
  }

  /** Every response is charged once, at the latest by a retried settlement. */
  private async accounts(): Promise<string[]> {
    let ledger = await ledgerOf(this.service, this.customer.id);
    await until(
      'All is charged and nothing reserved',
      async () => {
        ledger = await ledgerOf(this.service, this.customer.id);
        return ledger.used >= this.fetched && ledger.reserved === 0;
      },
      SETTLED_WITHIN_MS,
    ).catch(() => undefined);
    return [
      ...(ledger.used === this.fetched ? [] : [`charged ${ledger.used} for ${this.fetched}`]),
      ...(ledger.reserved === 0 ? [] : [`${ledger.reserved} counts stayed reserved`]),
      ...(ledger.exact ? [] : ['the usage cannot be recomputed']),
    ];
  }

  private async report(measured: readonly Measurements<CellEnd>[]): Promise<Check[]> {
    const ends = measured.flatMap(({ all }) => all);
    const timed = measured.map(({ last }) => last);
    const bugs = (await this.service.log()).split('\n').filter((line) => line.includes('"event":"bug"'));
    const givenUp = (await this.service.metrics()).get('ct_quota_settlements_total{outcome="given_up"}');
    const refused = timed.filter((end) => end.refused);
    return [
      nothing(
        'A call that can be refused is 503, an admitted one has a complete response; each is charged once for what was fetched, and no text is fetched without a reservation',
        ends.flatMap(({ wrong }) => wrong),
      ),
      equal('Some calls were refused', refused.length > 0, true),
      atMost(
        'A refusal takes at most two seconds',
        Math.max(0, ...refused.map(({ endedMs }) => endedMs)) / 1000,
        REFUSED_WITHIN_MS / 1000,
        's',
      ),
      atMost(
        'The service recovers without a restart after at most',
        Math.max(...timed.map(({ recoveredMs }) => recoveredMs)) / 1000,
        RECOVERED_WITHIN_MS / 1000,
        's',
      ),
      equal('No settlement was given up', givenUp, 0),
      equal('Final `usage --verify`: no reservation remains', await verifiedLedger(this.service, this.customer.id), {
        exact: true,
        used: this.fetched,
        reserved: 0,
      }),
      nothing('No bug in the log', bugs),
      ...(await settledState(this.service)),
    ];
  }
}
