import { startStandIn, type StandIn } from '../../../fake-youtube/fake-youtube.js';
import { ledgerOf } from '../../harness/ledger.js';
import { Service, type Answer, type Customer, type Resources } from '../../harness/service.js';
import { settledState } from '../../harness/settled.js';
import { readTold } from '../../harness/transcripts.js';
import { until } from '../../harness/until.js';
import type { Promised, Torture } from '../../chaos-run.js';
import { type Cell, faultsOf, nameOf } from './cells.js';
import { judge } from './expected.js';

export const DEADLINE_SECONDS = 4;
/** More than anything that the service remembers, or leaves alone for a while, lasts. */
const SKIP_MS = 30 * 3_600_000;
const CALLS = ['/channels/@harbourlight/transcripts?limit=20', '/channels/@bench-4x30/transcripts'];
/** Sixteen megabytes for each request are enough with few. */
const CALLS_HUGE = ['/channels/@harbourlight/transcripts?limit=4'];
const IDLE_MS = 60_000;

export interface CellEnd {
  cell: Cell;
  /** Requests that a fault hit. */
  struck: number;
  calls: number;
  entries: number;
  succeeded: number;
  refused: number;
  late: number;
  slowestMs: number;
  wrong: string[];
}

/** What is left of a lane when all is over. */
export interface LaneEnd {
  fetched: number;
  used: number;
  reserved: number;
  exact: boolean;
  leaks: string[];
  bugs: string[];
  settled: Promised[];
  /** Requests to the stand-in. */
  asked: number;
  /** The most memory that its service had. */
  peakMegabytes: number;
}

/** A service with a stand-in of its own, so that what one cell does to it disturbs no other lane. */
export class Lane {
  private fetched = 0;
  private asked = 0;
  private truth: ReadonlyMap<string, string> = new Map();

  private constructor(
    private readonly torture: Torture,
    private readonly service: Service,
    private readonly standIn: StandIn,
    private readonly customer: Customer,
    private readonly before: Resources,
    private readonly name: string,
  ) {}

  /** @param upstreamTimeoutSeconds of one exchange; when it is longer than the deadline, that comes first */
  static async start(torture: Torture, seed: number, upstreamTimeoutSeconds: number): Promise<Lane> {
    const standIn = await startStandIn({ seed });
    const service = await Service.start(torture.folder, {
      DATABASE_URL: await torture.database.create(),
      YOUTUBE_BASE_URL: standIn.url,
      REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
      UPSTREAM_TIMEOUT_SECONDS: String(upstreamTimeoutSeconds),
    });
    const customer = await service.customer();
    const name = `lane ${seed - torture.seed + 1}`;
    const lane = new Lane(torture, service, standIn, customer, await service.resources(), name);
    await lane.learn();
    return lane;
  }

  /** Makes a few calls side by side while the faults of a cell strike. */
  async run(cell: Cell, location: string, seed: number): Promise<CellEnd> {
    await this.heal();
    this.standIn.reseed(seed);
    this.standIn.setFaults(...faultsOf(cell, location));
    const paths = cell.some(({ kind }) => kind === 'huge') ? CALLS_HUGE : CALLS;
    const answers = await Promise.all(paths.map((path) => this.call(path)));
    const struck = this.standIn.requests.list.filter(({ fault }) => fault !== null).length;
    const end: CellEnd = {
      ...{ cell, struck, calls: paths.length, entries: 0, succeeded: 0, refused: 0, late: 0, slowestMs: 0, wrong: [] },
    };
    for (const answer of answers) this.add(end, answer);
    return end;
  }

  async finish(): Promise<LaneEnd> {
    await this.heal();
    const leaks = await this.leaks();
    let ledger = await ledgerOf(this.service, this.customer.id);
    await until('Nothing is reserved', async () => {
      ledger = await ledgerOf(this.service, this.customer.id);
      return ledger.reserved === 0;
    }).catch(() => undefined);
    const log = await this.service.log();
    const bugs = log.split('\n').filter((line) => /"event":"(?:bug|youtube_internal_error)"|^[^{]/.test(line));
    const { peakRss } = await this.service.resources();
    const peakMegabytes = peakRss / 1e6;
    const settled = await settledState(this.service, this.name);
    return { ...ledger, peakMegabytes, fetched: this.fetched, leaks, bugs, settled, asked: this.asked };
  }

  async stop(): Promise<void> {
    await this.service.stop();
    await this.standIn.close();
  }

  private add(end: CellEnd, answer: Answer | Error): void {
    if (answer instanceof Error) {
      end.wrong.push(`${nameOf(end.cell)}: ${answer.message}`);
      return;
    }
    const { told, wrong, late } = judge(end.cell, answer, this.truth);
    end.slowestMs = Math.max(end.slowestMs, answer.ms);
    end.late += late;
    end.wrong.push(...wrong.map((what) => `${nameOf(end.cell)}: ${what}`));
    if (answer.status !== 200) end.refused += 1;
    if (!told) return;
    end.entries += told.entries.length;
    end.succeeded += told.summary.succeeded;
    this.fetched += told.summary.fetched;
  }

  private call(path: string): Promise<Answer | Error> {
    return this.service.get(path, this.customer.key).catch((error: unknown) => error as Error);
  }

  /** How each video ends when nothing goes wrong. */
  private async learn(): Promise<void> {
    const answers = await Promise.all(CALLS.map((path) => this.service.get(path, this.customer.key)));
    const told = answers.map((answer) => {
      const read = readTold(answer);
      if (!read) throw new Error(`A call without any fault is answered ${answer.status} ${answer.text.slice(0, 200)}`);
      this.fetched += read.summary.fetched;
      return read;
    });
    this.truth = new Map(told.flatMap(({ entries }) => entries.map(({ videoId, end }) => [videoId, end] as const)));
  }

  /** No fault, nothing remembered, and nothing that rests because it was refused. */
  private async heal(): Promise<void> {
    const { requests } = this.standIn;
    this.standIn.setFaults();
    await until('Nothing is under way', () => requests.inFlight === 0);
    await this.service.skip(SKIP_MS);
    await until('The service asks again', async () => {
      const told = readTold(await this.service.get('/channels/@bench-1x1/transcripts', this.customer.key));
      this.fetched += told?.summary.fetched ?? 0;
      if (told?.summary.fetched === 1) return true;
      await this.service.skip(SKIP_MS);
      return false;
    });
    await this.service.skip(SKIP_MS);
    this.asked += requests.total;
    requests.clear();
  }

  /** What is still held when there is nothing to do any more, beside the pool of connections to the database. */
  private async leaks(): Promise<string[]> {
    let found: string[] = [];
    const url = this.service.environment['DATABASE_URL'] ?? '';
    await until(
      'Nothing is held',
      async () => {
        const { held } = await this.service.resources();
        const [row] = await this.torture.database.query(
          url,
          "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'channel-transcripts'",
        );
        const allowed: Record<string, number> = { ...this.before.held, TCPSocketWrap: Number(row?.['count']) };
        found = Object.entries(held).flatMap(([name, count]) =>
          count > (allowed[name] ?? 0) ? [`${count} ${name} instead of ${allowed[name] ?? 0}`] : [],
        );
        return found.length === 0;
      },
      IDLE_MS,
      500,
    ).catch(() => undefined);
    return found;
  }
}
