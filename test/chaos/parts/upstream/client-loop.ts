import { startFakeYoutube, type FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { HttpResponse } from '../../../harness/http-request.js';
import { ledgerOf } from '../../harness/ledger.js';
import { Service, type Customer } from '../../harness/service.js';
import { settledState } from '../../harness/settled.js';
import { readTranscripts } from '../../harness/transcripts.js';
import { until } from '../../harness/until.js';
import type { Check, ChaosRun } from '../../chaos-run.js';
import { type Cell, faultsOf, nameOf } from './cells.js';
import { check } from './expected.js';

export const DEADLINE_SECONDS = 4;
/** Longer than every cache entry and every pause of the service. */
const SKIP_MS = 8 * 24 * 3_600_000;
const CALLS = ['/channels/@harbourlight/transcripts?limit=20', '/channels/@4-videos-no-30/transcripts'];
/** A few requests are enough for responses of megabytes: with more of them a call tests the speed of the machine. */
const CALLS_HUGE = ['/channels/@harbourlight/transcripts?limit=4'];

export interface CellEnd {
  cell: Cell;
  /** Requests with a fault. */
  struck: number;
  /** What timed out although no fault delays responses. */
  late: string[];
  slowestMs: number;
  wrong: string[];
}

/** The final state of a worker's service. */
export interface WorkerResult {
  fetched: number;
  used: number;
  bugs: string[];
  settled: Check[];
  /** Maximum memory of its service. */
  peakMegabytes: number;
}

/** A service with its own fake YouTube, so that parallel workers do not affect each other. */
export class Worker {
  private fetched = 0;
  private truth: ReadonlyMap<string, string> = new Map();

  private constructor(
    private readonly chaosRun: ChaosRun,
    private readonly service: Service,
    private readonly fakeYoutube: FakeYoutube,
    private readonly customer: Customer,
    private readonly name: string,
  ) {}

  /** @param upstreamTimeoutSeconds of one request; the call's deadline applies when it is shorter */
  static async start(chaosRun: ChaosRun, seed: number, upstreamTimeoutSeconds: number): Promise<Worker> {
    const fakeYoutube = await startFakeYoutube({ seed });
    const service = await Service.start(chaosRun.folder, {
      DATABASE_URL: await chaosRun.database.create(),
      YOUTUBE_BASE_URL: fakeYoutube.url,
      REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
      UPSTREAM_TIMEOUT_SECONDS: String(upstreamTimeoutSeconds),
      // A pace learned from the faults of one cell would delay the calls of the next.
      UPSTREAM_PLAYER_PER_MINUTE: '0',
      UPSTREAM_TIMEDTEXT_PER_MINUTE: '0',
    });
    const customer = await service.customer();
    const name = `worker ${seed - chaosRun.seed + 1}`;
    const worker = new Worker(chaosRun, service, fakeYoutube, customer, name);
    await worker.learn();
    return worker;
  }

  /** Makes a few concurrent calls while the faults of a cell are active. */
  async run(cell: Cell, location: string, seed: number): Promise<CellEnd> {
    await this.heal();
    this.fakeYoutube.reseed(seed);
    this.fakeYoutube.setFaults(...faultsOf(cell, location));
    const paths = cell.some(({ kind }) => kind === 'huge') ? CALLS_HUGE : CALLS;
    const responses = await Promise.all(paths.map((path) => this.call(path)));
    const struck = this.fakeYoutube.requests.list.filter(({ fault }) => fault !== null).length;
    const end: CellEnd = { cell, struck, late: [], slowestMs: 0, wrong: [] };
    for (const response of responses) this.add(end, response);
    return end;
  }

  async finish(): Promise<WorkerResult> {
    await this.heal();
    const settled = await settledState(this.service, this.name);
    const { used } = await ledgerOf(this.service, this.customer.id);
    const log = await this.service.log();
    const bugs = log.split('\n').filter((line) => /"event":"(?:bug|youtube_internal_error)"|^[^{]/.test(line));
    const peakMegabytes = await this.service.peakMegabytes();
    return { used, peakMegabytes, fetched: this.fetched, bugs, settled };
  }

  async stop(): Promise<void> {
    await this.service.stop();
    await this.fakeYoutube.close();
  }

  private add(end: CellEnd, response: HttpResponse | Error): void {
    if (response instanceof Error) {
      end.wrong.push(`${nameOf(end.cell)}: ${response.message}`);
      return;
    }
    const { reported, wrong, late } = check(end.cell, response, this.truth);
    end.slowestMs = Math.max(end.slowestMs, response.ms);
    end.late.push(...late);
    end.wrong.push(...wrong.map((what) => `${nameOf(end.cell)}: ${what}`));
    this.fetched += reported?.summary.fetched ?? 0;
  }

  private call(path: string): Promise<HttpResponse | Error> {
    return this.service.get(path, this.customer.key).catch((error: unknown) => error as Error);
  }

  /** The result of each video without faults. */
  private async learn(): Promise<void> {
    const responses = await Promise.all(CALLS.map((path) => this.service.get(path, this.customer.key)));
    const reported = responses.map((response) => {
      const read = readTranscripts(response);
      if (!read)
        throw new Error(`A call without any fault is answered ${response.status} ${response.text.slice(0, 200)}`);
      this.fetched += read.summary.fetched;
      return read;
    });
    this.truth = new Map(reported.flatMap(({ entries }) => entries.map(({ videoId, end }) => [videoId, end] as const)));
  }

  /** Removes all faults, expires all caches and ends all pauses. */
  private async heal(): Promise<void> {
    const { requests } = this.fakeYoutube;
    this.fakeYoutube.setFaults();
    await until('No request is in flight', () => requests.inFlight === 0);
    await this.service.skip(SKIP_MS);
    await until('The service sends requests again', async () => {
      const reported = readTranscripts(
        await this.service.get('/channels/@1-videos-no-1/transcripts', this.customer.key),
      );
      this.fetched += reported?.summary.fetched ?? 0;
      if (reported?.summary.fetched === 1) return true;
      await this.service.skip(SKIP_MS);
      return false;
    });
    await this.service.skip(SKIP_MS);
    requests.clear();
  }
}
