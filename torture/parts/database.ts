import { setTimeout as sleep } from 'node:timers/promises';
import { startStandIn, type StandIn } from '../../stand-in/stand-in.js';
import { type Database, startDatabase } from '../surroundings/database.js';
import { ledgerOf } from '../surroundings/ledger.js';
import { type Answer, type Customer, Service } from '../surroundings/service.js';
import { settledState } from '../surroundings/settled.js';
import { brokenIdentities, codeOf, readTold } from '../surroundings/transcripts.js';
import { until } from '../surroundings/until.js';
import { atMost, equal, nothing, type Part, type PartReport } from '../torture.js';
import { databaseFaults, type DatabaseFault } from './database/faults.js';
import { type Phase, phasesOf } from './database/phases.js';
import { storm, type StormEnd } from './database/storm.js';

const DEADLINE_SECONDS = 5;
const REFUSED_WITHIN_MS = 2_000;
const VIDEOS = 3;
const STORM_MS = 25_000;
const STORM_SHORT_MS = 2_000;
/** The lease of a reservation that nobody knows of. */
const LEASE_MS = (DEADLINE_SECONDS + 15) * 1_000;

interface CellEnd {
  fault: string;
  phase: string;
  told: string;
  /** From the fault, or the call when that came later, to the end of the call. */
  endedMs: number;
  refused: boolean;
  recoveredMs: number;
  wrong: string[];
}

/** The database in every kind of trouble, at every moment of a call. */
export const database: Part = async (torture) => {
  const own = await startDatabase(torture.folder, 'postgres-in-trouble', ['fsync=off', 'max_connections=40']);
  const standIn = await startStandIn({ seed: torture.seed });
  let service: Service | undefined;
  try {
    service = await Service.start(torture.folder, {
      DATABASE_URL: await own.create(),
      YOUTUBE_BASE_URL: standIn.url,
      REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
    });
    return await new Trouble(own, standIn, service, await service.customer()).run(
      torture.short,
      torture.seed,
      torture.say,
    );
  } finally {
    await own.thaw();
    await service?.stop();
    await standIn.close();
    await own.stop();
  }
};

class Trouble {
  private calls = 0;
  private fetched = 0;

  constructor(
    private readonly database: Database,
    private readonly standIn: StandIn,
    private readonly service: Service,
    private readonly customer: Customer,
  ) {}

  async run(short: boolean, seed: number, say: (line: string) => void): Promise<PartReport> {
    const url = this.service.environment['DATABASE_URL'] ?? '';
    const faults = databaseFaults(this.database, url);
    const phases = phasesOf(this.database, url, this.standIn, this.customer.id);
    const cells = faults.flatMap((fault) => phases.map((phase) => ({ fault, phase })));
    const chosen = short ? cells.filter((_cell, index) => index % (phases.length + 1) === 0) : cells;
    await this.recovered();
    const ends: CellEnd[] = [];
    for (const { fault, phase } of chosen) {
      ends.push(await this.cell(fault, phase));
      if (phase.name === 'after') say(fault.name);
    }
    const choices = { seed, ms: short ? STORM_SHORT_MS : STORM_MS, videos: VIDEOS };
    const end = await storm(this.database, this.standIn, this.service, this.customer, choices);
    this.fetched += end.fetched;
    await this.recovered();
    return this.report(chosen.length, ends, end);
  }

  /** One call, with a fault at a moment of it; then the fault is over, and the accounts are looked at. */
  private async cell(fault: DatabaseFault, phase: Phase): Promise<CellEnd> {
    this.standIn.reset();
    const stand = await phase.prepare();
    const wrong: string[] = [];
    let startedAtMs = performance.now();
    const make = (): Promise<Answer> => {
      startedAtMs = performance.now();
      return this.call();
    };
    const whole = phase.name === 'after' ? await make() : undefined;
    const running = whole ?? (phase.name === 'before' ? undefined : make());
    await stand.arrived();
    const struckAtMs = performance.now();
    await fault.strike();
    const answering = Promise.resolve(running ?? make());
    // What waits for a lock is let go when the fault has come, as is what the platform holds.
    await stand.release();
    const [answer] = await Promise.all([answering, sleep(fault.lastsMs)]);
    const endedMs = startedAtMs + answer.ms - Math.max(startedAtMs, struckAtMs);
    const asked = this.standIn.requests.count({ kind: 'timedtext' });
    await fault.heal();
    const healedAtMs = performance.now();
    const told = readTold(answer);
    if (told && answer.status === 200) {
      this.fetched += told.summary.fetched;
      wrong.push(...brokenIdentities(told));
      if (told.summary.fetched !== VIDEOS) wrong.push(`fetched ${told.summary.fetched} of ${VIDEOS}`);
      if (fault.isOutage && phase.refusable) wrong.push('answered although the database was away');
    } else {
      if (answer.status !== 503 || codeOf(answer) !== 'service_unavailable') {
        wrong.push(`answered ${answer.status} ${codeOf(answer)}${answer.whole ? '' : ', cut short'}`);
      }
      if (answer.headers['retry-after'] === undefined) wrong.push('refused without Retry-After');
      if (!phase.refusable) wrong.push('refused after it was granted');
      if (asked > 0) wrong.push(`${asked} texts were fetched without a reservation`);
    }
    await this.recovered();
    const recoveredMs = performance.now() - healedAtMs;
    wrong.push(...(await this.accounts()));
    return {
      fault: fault.name,
      phase: phase.name,
      told: answer.status === 200 ? 'whole' : String(answer.status),
      endedMs,
      refused: answer.status !== 200,
      recoveredMs,
      wrong: wrong.map((what) => `${fault.name} ${phase.name}: ${what}`),
    };
  }

  /** Each for a channel that nobody asked for before. */
  private call(): Promise<Answer> {
    this.calls += 1;
    return this.service.get(`/channels/@bench-${VIDEOS}x${this.calls}/transcripts`, this.customer.key, {
      timeoutMs: 60_000,
    });
  }

  private async recovered(): Promise<void> {
    await until('The service answers again', async () => {
      const told = readTold(await this.call());
      this.fetched += told?.summary.fetched ?? 0;
      return told?.summary.fetched === VIDEOS;
    });
  }

  /** Every answer is charged once, at the latest when its settlement was tried again. */
  private async accounts(): Promise<string[]> {
    let ledger = await ledgerOf(this.service, this.customer.id);
    await until(
      'All is charged',
      async () => {
        ledger = await ledgerOf(this.service, this.customer.id);
        return ledger.used >= this.fetched;
      },
      LEASE_MS,
    ).catch(() => undefined);
    return [
      ...(ledger.used === this.fetched ? [] : [`charged ${ledger.used} for ${this.fetched}`]),
      ...(ledger.exact ? [] : ['the usage cannot be recomputed']),
    ];
  }

  private async report(count: number, ends: readonly CellEnd[], stormed: StormEnd): Promise<PartReport> {
    const { reserved } = await ledgerOf(this.service, this.customer.id);
    await until(
      'Nothing is reserved',
      async () => (await ledgerOf(this.service, this.customer.id)).reserved === 0,
      LEASE_MS + 5_000,
      200,
    );
    const verified = await this.service.verified(this.customer.id);
    const log = await this.service.log();
    const bugs = log.split('\n').filter((line) => line.includes('"event":"bug"'));
    const metrics = await this.service.metrics();
    const metric = (name: string): number => metrics.get(name) ?? Number.NaN;
    const refused = ends.filter((end) => end.refused);
    const faults = [...new Set(ends.map(({ fault }) => fault))];
    const phases = [...new Set(ends.map(({ phase }) => phase))];
    const shown = (fault: string, phase: string): string => {
      const end = ends.find((one) => one.fault === fault && one.phase === phase);
      if (!end) return '';
      return end.endedMs > 0 ? `${end.told}, ${(end.endedMs / 1000).toFixed(1)} s` : end.told;
    };
    return {
      title: 'The database in every kind of trouble',
      text:
        `A call for ${VIDEOS} videos, the trouble at a moment of it, then an end of the trouble: how the call ended, and the ` +
        `seconds from the trouble to that. ${this.calls} calls; ${metric('ct_quota_settlement_retries_total')} settlements were tried ` +
        `again. In a storm of ${stormed.blows} blows (connections cut at random, the database standing still or restarted) ` +
        `${stormed.calls} more calls, of which ${stormed.refused} were refused. ${reserved} counts were left to the leases of calls that were refused before they knew of their reservation.`,
      columns: ['database', ...phases],
      rows: faults.map((fault) => [fault, ...phases.map((phase) => shown(fault, phase))]),
      promised: [
        equal('Every trouble came at every moment', ends.length, count),
        nothing(
          'A call that can be refused is 503, one that was granted is answered in full; each is charged once for what was fetched, and no text is fetched without a reservation',
          ends.flatMap(({ wrong }) => wrong),
        ),
        equal('Calls were refused at all', refused.length > 0, true),
        atMost(
          'A refusal comes within two seconds',
          Math.max(0, ...refused.map(({ endedMs }) => endedMs)) / 1000,
          REFUSED_WITHIN_MS / 1000,
          's',
        ),
        atMost(
          'The service works again without a restart, at the latest after',
          Math.max(...ends.map(({ recoveredMs }) => recoveredMs)) / 1000,
          10,
          's',
        ),
        nothing('In the storm too every call is 503 or answered in full', stormed.wrong),
        equal('In the storm calls were answered and refused', stormed.fetched > 0 && stormed.refused > 0, true),
        atMost('In the storm no text is asked for that was not reserved for', stormed.asked, stormed.reserved, 'texts'),
        equal('No settlement was given up', metric('ct_quota_settlements_total{outcome="given_up"}'), 0),
        equal('At the end, by usage --verify', verified, { exact: true, used: this.fetched, reserved: 0 }),
        nothing('No fault in the log', bugs),
        ...(await settledState(this.service)),
      ],
    };
  }
}
