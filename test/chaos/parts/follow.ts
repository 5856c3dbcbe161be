import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { DatabaseClock } from '../../database/database-clock.js';
import { Fleet } from '../harness/fleet.js';
import { RandomSource } from '../harness/random.js';
import type { Customer } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { until } from '../harness/until.js';
import { equal, nothing, type Check, type ChaosRun, type Part } from '../chaos-run.js';
import { Acts, type World } from './follow/acts.js';
import { Books, type OpenWork } from './follow/books.js';
import { EventLog } from './follow/events.js';
import { Follower } from './follow/follower.js';
import { ChannelHistory } from './follow/history.js';

const PROCESSES = 2;
const ORGANIZATIONS = 3;
/** Seen in whole, in its first page of two, and in its first of three. */
const CHANNELS = ['@tidewater', '@130-videos-no-83', '@fogsignalradio'];
const FIRST_UPLOADS = 3;
const ACTS = 600;
const ACTS_SHORT = 60;
const PAUSE_MS_MAX = 120;
/** The subscriptions are that old when the history begins: of 250 uploads at once each is a minute older than the one above. */
const AGE_SECONDS = 6 * 3_600;
const LOOK_MS = 150;
const IDLE_MS = 60_000;
/** Checks at the end; the last ones find nothing. */
const CHECKS_MIN = 3;
const CHECKS_MAX = 12;
/** Between the first checks every pause ends; between later ones a day, as a deleted upload is tried again for three days. */
const PAUSE_SECONDS = 3_700;
const DAY_SECONDS = 86_400;

/** Subscriptions under random histories of their channels, kills, refusals and a quota that runs out. */
export const follow: Part = async (chaosRun) => {
  const random = new RandomSource(chaosRun.seed);
  const fakeYoutube = await startFakeYoutube({ seed: chaosRun.seed });
  const events = await EventLog.start(new RandomSource(chaosRun.seed));
  let fleet: Fleet | undefined;
  try {
    const databaseUrl = await chaosRun.database.create();
    const environment = {
      DATABASE_URL: databaseUrl,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      REQUEST_DEADLINE_SECONDS: '10',
      UPSTREAM_TIMEOUT_SECONDS: '2',
      UPSTREAM_PLAYER_PER_MINUTE: '0',
      UPSTREAM_TIMEDTEXT_PER_MINUTE: '0',
      WEBHOOK_SECRET_KEY: 'chaos-tests-webhook-secret-key-4f8a72c1',
      WEBHOOK_ALLOW_PRIVATE: 'true',
      // The clock of the database is moved on by days.
      SUBSCRIPTION_RESULTS_TTL_HOURS: '72000',
      JOB_RESULTS_TTL_HOURS: '72000',
      USAGE_RETENTION_MONTHS: '1000',
      JOBS_PER_ORGANIZATION: '1000',
      JOB_SWEEP_SECONDS: '1',
    };
    fleet = await Fleet.start(chaosRun.folder, environment, PROCESSES, new RandomSource(chaosRun.seed));
    const books = new Books(chaosRun.database, databaseUrl);
    const histories = CHANNELS.map((handle) => new ChannelHistory(fakeYoutube, random, handle));
    const { database } = chaosRun;
    await new DatabaseClock((statement) => database.query(databaseUrl, statement)).move(-AGE_SECONDS);
    const customers = await createCustomers(fleet, events.url);
    const followers = await createFollowers(fleet, customers, histories);
    const world = { fleet, database, databaseUrl, fakeYoutube, customers, histories, followers, events, books, random };
    return await new FollowRun(chaosRun, world).run();
  } finally {
    await fleet?.stop('SIGKILL');
    await events.close();
    await fakeYoutube.close();
  }
};

async function createCustomers(fleet: Fleet, url: string): Promise<Customer[]> {
  const customers: Customer[] = [];
  for (let index = 0; index < ORGANIZATIONS; index += 1) {
    const customer = await fleet.running[0]?.customer();
    if (!customer) throw new Error('A process runs.');
    customers.push(customer);
    const body = { url, events: ['upload.ready', 'upload.failed'] };
    const { status, text } = await fleet.call(customer, 'POST', '/webhooks', { body });
    if (status !== 201) throw new Error(`POST /webhooks answers ${status}: ${text}`);
  }
  return customers;
}

/** Each organization follows each channel; the first one keeps texts, the last one wants videos only, and one begins with the newest uploads. */
async function createFollowers(
  fleet: Fleet,
  customers: readonly Customer[],
  histories: readonly ChannelHistory[],
): Promise<Follower[]> {
  const followers: Follower[] = [];
  for (const customer of customers) {
    const only = {
      ...(customer === customers[0] && { keep: true }),
      ...(customer === customers.at(-1) && { kinds: ['video'] as const }),
    };
    const wanted = { start: 'now' as const, ...only };
    for (const history of histories) followers.push(await Follower.create(fleet, customer, history, wanted));
  }
  const [customer, history] = [customers[1], histories[1]];
  if (customer && history) {
    followers.push(await Follower.create(fleet, customer, history, { start: FIRST_UPLOADS }));
  }
  return followers;
}

class FollowRun {
  private readonly acts: Acts;
  private readonly violations = new Set<string>();
  private looking = true;

  constructor(
    private readonly chaosRun: ChaosRun,
    private readonly world: World,
  ) {
    this.acts = new Acts(world, chaosRun.short ? 0 : 1);
  }

  async run(): Promise<Check[]> {
    const { books, followers, random } = this.world;
    const { short, say } = this.chaosRun;
    await until('Every subscription has its start', async () => (await books.open()).unchecked === 0);
    await this.acts.begin();
    for (const follower of followers) follower.startReading();
    const looks = this.look();
    // An error ends the run before they are awaited.
    looks.catch(() => undefined);
    const wanted = short ? ACTS_SHORT : ACTS;
    for (let count = 0; count < wanted || this.acts.missing.length > 0; count += 1) {
      await this.acts.act();
      await sleep(random.below(PAUSE_MS_MAX));
      if (count % 100 === 99) say(`${count + 1} acts`);
    }
    say(`the faults have ended, ${this.world.fleet.kills} processes killed`);
    const open = await this.finish();
    this.looking = false;
    await looks;
    for (const follower of followers) await follower.endReading();
    for (const follower of followers) await follower.compare(this.world.events.of(follower.id));
    return this.report(open);
  }

  private async look(): Promise<void> {
    while (this.looking) {
      for (const violation of await this.world.books.violations()) this.violations.add(violation);
      await sleep(LOOK_MS);
    }
  }

  /** Checks until nothing is new, tried again or delivered. @returns what is open nevertheless */
  private async finish(): Promise<OpenWork> {
    await this.acts.end();
    let open = await this.world.books.open();
    for (let checks = 0; checks < CHECKS_MAX; checks += 1) {
      await this.acts.checkAll(checks < CHECKS_MIN ? PAUSE_SECONDS : DAY_SECONDS);
      await until(
        'Nothing runs or is due',
        async () => {
          open = await this.world.books.open();
          return open.claims === 0 && open.due === 0;
        },
        IDLE_MS,
      );
      if (checks + 1 >= CHECKS_MIN && open.jobs === 0 && open.deliveries === 0) break;
    }
    return open;
  }

  private async report(open: OpenWork): Promise<Check[]> {
    const { fleet, followers, histories, events } = this.world;
    const uploads = histories.reduce((sum, { published }) => sum + published.size, 0);
    this.chaosRun.say(
      `${uploads} uploads, ${this.acts.calls.size} complete calls, ${fleet.kills} kills, ${events.failures} failed deliveries`,
    );
    const settled: Check[] = [];
    for (const [index, service] of fleet.running.entries()) {
      settled.push(...(await settledState(service, `process ${index + 1}`)));
    }
    return [
      equal('acts that were never done', this.acts.missing, []),
      equal('what is not done at the end', open, {
        ...open,
        jobs: 0,
        claims: 0,
        due: 0,
        deliveries: 0,
        reservations: 0,
      }),
      nothing(
        'Each upload is in each feed once and an event once, in order and without gaps, for every reader; nothing from before the start is',
        followers.flatMap(({ wrong }) => wrong),
      ),
      nothing(
        'In every snapshot the counts of each subscription are those of its uploads, and the charges those of what was fetched',
        [...this.violations],
      ),
      nothing('texts that are kept and not found, or stay in the feed without being kept', await this.wronglyKept()),
      nothing('complete calls that were charged anything but what they have fetched', await this.wronglyCharged()),
      nothing('jobs that were refused', this.acts.wrong),
      nothing('bugs in the logs', await this.bugs()),
      ...settled,
    ];
  }

  private async wronglyCharged(): Promise<string[]> {
    const wrong: string[] = [];
    for (const [requestId, fetched] of this.acts.calls) {
      const charged = (await this.world.books.chargeOf(requestId)) ?? 0;
      if (charged !== fetched) wrong.push(`${requestId} has fetched ${fetched} and was charged ${charged}`);
    }
    return wrong;
  }

  /** The organization that keeps must have each delivered text, and its entry in the feed for good; the others none. */
  private async wronglyKept(): Promise<string[]> {
    const { database, databaseUrl } = this.world;
    const rows = await database.query(
      databaseUrl,
      `SELECT log.job_id || ' ' || video.video_id AS wrong
         FROM log_entries log JOIN jobs job ON job.id = log.job_id JOIN job_videos video USING (job_id, position)
         WHERE (video.state = 'succeeded' AND job.request::jsonb -> 'keep' = 'true') <> (log.is_kept AND EXISTS (
           SELECT FROM library_texts text JOIN library_passages ON text_id = text.id
             WHERE text.organization_id = log.organization_id AND text.video_id = video.video_id))`,
    );
    return rows.map(({ wrong }) => String(wrong));
  }

  private async bugs(): Promise<string[]> {
    const logs = await Promise.all(this.world.fleet.logFiles.map((file) => readFile(file, 'utf8')));
    return logs
      .flatMap((log) => log.split('\n'))
      .filter((line) => /"event":"bug"|"level":"error".*"event":"(slice|job_video)_failed"/.test(line))
      .map((line) => line.slice(0, 300));
  }
}
