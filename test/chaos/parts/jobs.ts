import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { startDatabase } from '../harness/database.js';
import { RandomSource } from '../harness/random.js';
import type { Customer } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { atMost, equal, nothing, type Check, type ChaosRun, type Part } from '../chaos-run.js';
import { Archive } from './jobs/archive.js';
import { JobFaults, type Targets } from './jobs/faults.js';
import { wrongInLibrary } from './jobs/kept.js';
import { Fleet } from '../harness/fleet.js';
import { outlookIn, violationsIn } from './jobs/snapshot.js';

const PROCESSES = 3;
const ORGANIZATIONS = 5;
const KILLS = 50;
const KILLS_SHORT = 2;
const VIDEOS = [300, 300, 500, 2_000];
const VIDEOS_SHORT = [60, 120];
/** Unfinished jobs of an organization while the faults last. */
const JOBS_EACH = 2;
const JOBS_EACH_SHORT = 1;
/** No jobs are created during the last kills, so that these hit the remaining ones. */
const NEW_JOBS_SHARE = 0.8;
const PAUSE_MS_MAX = 600;
const PAUSE_SHORT_MS_MAX = 300;
/** A short run injects most faults once, also at moments at which no slice runs. */
const INEFFECTIVE_SHORT_MAX = 5;
const LOOK_MS = 150;
/** From the end of the faults until every job has ended. */
const END_MS = 600_000;
const END_SHORT_MS = 120_000;
/** Jobs that wait for the quota get the next month at once: by themselves they look for it every hour. */
const MONTH_SECONDS = 31 * 86_400;
const MONTHLY_LIMIT_AT_THE_END = 800;
const MONTHLY_LIMIT_AT_THE_END_SHORT = 60;
/** Two organizations have this limit while the faults last: one job of theirs pauses, another fails at it. */
const TIGHT_LIMIT = 150;
const NO_LIMIT = 1_000_000;
/** The jobs of these organizations keep their texts. */
const KEEPING = [2, 3];

/** Archive jobs under kills, outages, blocks, limits and cancels. */
export const jobs: Part = async (chaosRun) => {
  const random = new RandomSource(chaosRun.seed);
  const database = await startDatabase(chaosRun.folder, 'postgres-of-jobs', ['fsync=off']);
  const fakeYoutube = await startFakeYoutube({ seed: chaosRun.seed });
  let fleet: Fleet | undefined;
  try {
    const databaseUrl = await database.create();
    const environment = {
      DATABASE_URL: databaseUrl,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      REQUEST_DEADLINE_SECONDS: '10',
      UPSTREAM_TIMEOUT_SECONDS: '2',
      // After a block the pace grows for minutes; here every minute is one of faults.
      UPSTREAM_PLAYER_PER_MINUTE: '0',
      UPSTREAM_TIMEDTEXT_PER_MINUTE: '0',
      // The clock of the database is moved on by months.
      JOB_RESULTS_TTL_HOURS: '72000',
      USAGE_RETENTION_MONTHS: '1000',
      JOBS_PER_ORGANIZATION: '100',
      JOB_SWEEP_SECONDS: '1',
    };
    fleet = await Fleet.start(chaosRun.folder, environment, PROCESSES, random);
    const customers: Customer[] = [];
    for (let index = 0; index < ORGANIZATIONS; index += 1) {
      const [service] = fleet.running;
      if (!service) throw new Error('A process runs.');
      customers.push(await service.customer('pro', index < 2 ? TIGHT_LIMIT : NO_LIMIT));
    }
    const targets: Targets = { fleet, database, databaseUrl, fakeYoutube, customers, archives: [], random };
    return await new JobsRun(chaosRun, targets).run();
  } finally {
    await fleet?.stop('SIGKILL');
    await fakeYoutube.close();
    await database.stop();
  }
};

class JobsRun {
  private readonly archives: Archive[];
  private readonly faults: JobFaults;
  private readonly violations: string[] = [];
  private captionRequests = 0;
  private channels = 0;
  private looking = true;

  constructor(
    private readonly chaosRun: ChaosRun,
    private readonly targets: Targets,
  ) {
    this.archives = targets.archives;
    this.faults = new JobFaults(targets);
  }

  async run(): Promise<Check[]> {
    const { short, say } = this.chaosRun;
    const looks = Promise.all([this.lookAtJobs(), this.lookAtDatabase()]);
    const kills = short ? KILLS_SHORT : KILLS;
    let reported = 0;
    while (this.targets.fleet.kills < kills) {
      if (this.targets.fleet.kills < kills * NEW_JOBS_SHARE) await this.topUp();
      await sleep(this.targets.random.below(short ? PAUSE_SHORT_MS_MAX : PAUSE_MS_MAX));
      await this.faults.inject();
      if (this.targets.fleet.kills >= reported + 10) say(`${(reported = this.targets.fleet.kills)} processes killed`);
    }
    say('the faults have ended');
    const unfinished = await this.finish();
    this.looking = false;
    await looks;
    for (const archive of this.archives) await archive.look();
    await this.lookOnce();
    for (const archive of this.archives) if (archive.state === 'completed') await archive.compareResults();
    return this.report(unfinished);
  }

  /** Creates jobs for organizations that have few, a third of them for a channel that another job has. */
  private async topUp(): Promise<void> {
    const { customers, random, fleet } = this.targets;
    const { short } = this.chaosRun;
    for (const customer of customers) {
      const own = this.archives.filter((archive) => archive.customer === customer && archive.state !== 'completed');
      if (own.length >= (short ? JOBS_EACH_SHORT : JOBS_EACH)) continue;
      const number = (this.channels += 1);
      const known = random.often(0.33) ? this.archives.at(-1)?.handle : undefined;
      const content = random.often(0.3) ? 'mixed' : 'bench';
      const handle = known ?? `@${content}-${random.pick(short ? VIDEOS_SHORT : VIDEOS)}x${number}`;
      const onQuota = customer === customers[0] ? 'fail' : 'pause';
      const keep = KEEPING.includes(customers.indexOf(customer));
      const job = { handle, onQuota, keep, idempotencyKey: `job ${number}` } as const;
      this.archives.push(await Archive.create(fleet, customer, job));
    }
  }

  private async lookAtJobs(): Promise<void> {
    for (let turn = 0; this.looking; turn += 1) {
      const archive = this.archives[turn % Math.max(1, this.archives.length)];
      if (archive) await archive.look();
      await sleep(LOOK_MS);
    }
  }

  private async lookAtDatabase(): Promise<void> {
    while (this.looking) {
      await this.lookOnce().catch(() => undefined);
      await sleep(LOOK_MS);
    }
  }

  /** @throws when the database is down */
  private async lookOnce(): Promise<void> {
    const { database, databaseUrl, fakeYoutube } = this.targets;
    // The fake YouTube records a limited number of requests.
    this.captionRequests += fakeYoutube.requests.count({ kind: 'timedtext' });
    fakeYoutube.requests.clear();
    this.violations.push(...(await violationsIn(database, databaseUrl)));
  }

  /**
   * Ends every fault, resumes what was canceled or failed, and waits until all jobs have completed. The clock moves on
   * when nothing is due. @returns the jobs that have not completed
   */
  private async finish(): Promise<Archive[]> {
    const { fleet, customers, database, databaseUrl } = this.targets;
    // The second one keeps a limit, and gets one month after the other.
    const { short } = this.chaosRun;
    const tight = short ? MONTHLY_LIMIT_AT_THE_END_SHORT : MONTHLY_LIMIT_AT_THE_END;
    for (const customer of customers) {
      const monthlyLimit = customer === customers[1] ? tight : NO_LIMIT;
      await fleet.admin('PATCH', `/organizations/${customer.id}`, { plan: 'pro', monthlyLimit });
    }
    const endsAtMs = performance.now() + (short ? END_SHORT_MS : END_MS);
    const open = (): Archive[] => this.archives.filter(({ state }) => state !== 'completed');
    while (open().length > 0 && performance.now() < endsAtMs) {
      for (const archive of open()) {
        await archive.look();
        if (archive.ended && archive.state !== 'completed') await archive.change('resume');
      }
      const { claimed, due, seconds } = await outlookIn(database, databaseUrl);
      const waitForQuota = open().every(({ reason }) => reason === 'plan_limit_exceeded');
      if (claimed === 0 && due === 0 && seconds !== undefined) {
        await this.faults.pass(waitForQuota ? MONTH_SECONDS : Math.ceil(seconds) + 1);
      }
      await sleep(LOOK_MS);
    }
    return open();
  }

  private async report(unfinished: readonly Archive[]): Promise<Check[]> {
    const { fleet, database, databaseUrl, customers } = this.targets;
    const { ineffective } = this.faults;
    const wrongInLibraries = await Promise.all(
      customers
        .filter((_customer, index) => KEEPING.includes(index))
        .map((customer) => wrongInLibrary(fleet, customer, this.archives)),
    );
    const settled: Check[] = [];
    for (const [index, service] of fleet.running.entries()) {
      settled.push(...(await settledState(service, `process ${index + 1}`)));
    }
    const [forfeited] = await database.query(
      databaseUrl,
      'SELECT coalesce(sum(forfeited), 0)::integer AS count FROM quota_reservations',
    );
    const { claimed } = await outlookIn(database, databaseUrl);
    const videos = this.archives.reduce((sum, { handle }) => sum + Number(/-(\d+)x/.exec(handle)?.[1]), 0);
    const charged = this.archives.reduce((sum, { fetched }) => sum + fetched, 0);
    return [
      {
        name: 'every fault had an effect at least once: slices ran, a request was hit, or a job changed',
        observed: ineffective.length === 0 ? 'all' : `all but: ${ineffective.join(', ')}`,
        passed: ineffective.length <= (this.chaosRun.short ? INEFFECTIVE_SHORT_MAX : 0),
      },
      nothing(
        'jobs that have not completed',
        unfinished.map(({ id, state, reason }) => `${id} ${state} ${reason}`),
      ),
      nothing(
        'In every snapshot the counts of each job are those of its videos, each decided video has its result, and each organization is charged what its jobs fetched; what is kept is in the library as soon as it is final',
        [...new Set(this.violations)],
      ),
      nothing(
        'At every look total = succeeded + failed + pending, and nothing becomes less; at the end each video of each channel has one result, with its position',
        this.archives.flatMap(({ wrong }) => wrong),
      ),
      nothing(
        'At the end each kept video is listed and found by a word, what is found is listed, and a deleted video is not found',
        wrongInLibraries.flat(),
      ),
      atMost(
        'videos that failed although they have a text, because each of four attempts met a fault',
        this.archives.reduce((sum, { givenUp }) => sum + givenUp, 0),
        Math.ceil(videos / 100),
        `of ${videos}`,
      ),
      atMost('transcripts fetched, against the caption requests', charged, this.captionRequests, ''),
      equal('transcripts forfeited', Number(forfeited?.['count']), 0),
      equal('slices still claimed', claimed, 0),
      nothing('bugs in the logs', await this.bugs()),
      ...settled,
    ];
  }

  private async bugs(): Promise<string[]> {
    const logs = await Promise.all(this.targets.fleet.logFiles.map((file) => readFile(file, 'utf8')));
    return logs
      .flatMap((log) => log.split('\n'))
      .filter((line) => /"event":"bug"|"level":"error".*"event":"(slice|job_video)_failed"/.test(line))
      .map((line) => line.slice(0, 300));
  }
}
