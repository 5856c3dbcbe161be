import { setTimeout as sleep } from 'node:timers/promises';
import type { Hold } from '../../../fake-youtube/faults/held-requests.js';
import type { Deployment, DeploymentOptions } from './deployment.js';
import { traffic } from './traffic.js';

/** A deployment with a fault, and the alerts that the fault causes. */
export interface Scenario extends DeploymentOptions {
  /** What is done to the deployment, for the report. */
  cause: string;
  alerts: readonly string[];
  /** Causes the fault and keeps it up until the signal; `fires` waits for an alert of this deployment. */
  run(deployment: Deployment, signal: AbortSignal, fires: (alert: string) => Promise<void>): Promise<void>;
}

const SLOW_CALLS = 20;
const SLOW_SECONDS = 31;
/** At least two suspensions between two scrapes: the 99th percentile of a second's delays ignores a single one. */
const [SUSPENDED_MS, RUNNING_MS] = [350, 100];
const MEMORY_BYTES = 1.6e9;

/** The job of the deployment whose service works, except for a replica that is killed. */
export const WORKING = 'channel-transcripts';

/** By the job in Prometheus. Each has its own job, because some rules sum over all services of a job. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  [WORKING]: {
    cause: 'One of three replicas is killed',
    alerts: ['ServiceDown'],
    replicas: 3,
    environment: { UPSTREAM_PLAYER_PER_MINUTE: '6000', CALLS_PER_KEY: '10' },
    async run(deployment, signal, fires) {
      const load = traffic(deployment, signal);
      await deployment.services.at(-1)?.stop('SIGKILL');
      await Promise.all([load, fires('ServiceDown')]);
    },
  },
  'database-away': {
    cause: 'PostgreSQL is stopped during calls that then settle, and calls follow',
    alerts: ['DatabaseAway', 'ErrorRatio', 'SettlementsRetried', 'SettlementsGivenUp'],
    ownDatabase: true,
    // The deadline leaves a busy machine time to start the calls and to stop PostgreSQL. A settlement is given up 15 seconds
    // after it, when the lease of the call expires.
    environment: { REQUEST_DEADLINE_SECONDS: '15' },
    async run(deployment, signal) {
      const calls = 4;
      const hold = deployment.fakeYoutube.hold({ kind: 'timedtext' }, calls);
      const settling = Array.from({ length: calls }, () => deployment.coldCall());
      await hold.arrived;
      await deployment.database.stop();
      hold.release();
      await Promise.all([...settling, deployment.callUntil(signal)]);
    },
  },
  'redis-away': {
    cause: 'Redis is stopped; then it is read-only',
    alerts: ['RedisAway', 'CacheWritesRefused'],
    redis: true,
    async run(deployment, signal, fires) {
      await deployment.redis.stop();
      await fires('RedisAway');
      await deployment.redis.start('--replicaof', '127.0.0.1', '1');
      await deployment.callUntil(signal);
    },
  },
  blocked: {
    cause: 'YouTube answers every request with a captcha',
    alerts: ['AllExitsShut', 'BreakerOpen'],
    async run(deployment, signal) {
      deployment.fakeYoutube.setFaults({ kind: 'captcha' });
      await deployment.callUntil(signal);
    },
  },
  'bot-checks': {
    cause: 'YouTube refuses half of the videos with a bot check',
    alerts: ['UpstreamBlocked'],
    async run(deployment, signal) {
      for (let calls = 0; !signal.aborted; calls += 1) {
        // Fewer in a row than open the breaker, after which no request is sent that could be refused.
        deployment.fakeYoutube.setFaults(...(calls % 2 === 0 ? [{ kind: 'bot-check' } as const] : []));
        await deployment.coldCall(2);
        await sleep(50);
      }
    },
  },
  'proxies-away': {
    cause: 'Two proxies accept no connection',
    alerts: ['AllExitsResting'],
    environment: { UPSTREAM_PROXY_URL: 'http://127.0.0.1:1,http://127.0.0.1:2' },
    run: (deployment, signal) => deployment.callUntil(signal),
  },
  'clients-retired': {
    cause: 'YouTube refuses the version of one InnerTube client; then of the other one too',
    alerts: ['ClientRetired', 'AllClientsRetired'],
    environment: { YOUTUBE_CLIENTS: 'VISIONOS,ANDROID' },
    async run(deployment, signal, fires) {
      deployment.fakeYoutube.setFaults({ kind: 'retired', match: { client: 'VISIONOS' } });
      const calls = deployment.callUntil(signal);
      await fires('ClientRetired');
      deployment.fakeYoutube.setFaults({ kind: 'retired' });
      await calls;
    },
  },
  slow: {
    cause: `Captions arrive after more than ${SLOW_SECONDS} seconds, and calls pile up`,
    alerts: ['SlowCalls', 'CallsNearLimit'],
    environment: {
      CALLS_PER_PROCESS: String(SLOW_CALLS),
      UPSTREAM_CONCURRENCY: String(SLOW_CALLS),
      UPSTREAM_TIMEOUT_SECONDS: '60',
      REQUEST_DEADLINE_SECONDS: '60',
    },
    async run(deployment, signal) {
      const { fakeYoutube } = deployment;
      // rate() does not see the first increment of a series that starts with it.
      await deployment.coldCall();
      fakeYoutube.requests.clear();
      // Each request waits for all holds that are open when it arrives, so releasing them in turn ends one call each.
      const holds: Hold[] = [];
      const calls: Promise<unknown>[] = [];
      while (holds.length < SLOW_CALLS) {
        holds.push(fakeYoutube.hold({ kind: 'timedtext' }));
        calls.push(deployment.coldCall());
        await fakeYoutube.requests.until((log) => log.count({ kind: 'timedtext' }) === holds.length);
      }
      await pause(SLOW_SECONDS * 1_000, signal);
      for (const hold of holds) {
        hold.release();
        await pause(1_000, signal);
      }
      await Promise.all(calls);
    },
  },
  paced: {
    cause: 'Calls ask for more videos than the pace of the egress allows',
    alerts: ['UpstreamBusy'],
    environment: { UPSTREAM_PLAYER_PER_MINUTE: '10', REQUEST_DEADLINE_SECONDS: '5' },
    run: (deployment, signal) => deployment.callUntil(signal, 5),
  },
  jobs: {
    cause:
      'No process runs archive jobs: one has failed seven times and been due for an hour, and one is paused by a block, with ' +
      'large results; a webhook is encrypted with an unknown key',
    alerts: ['JobsStuck', 'JobsDelayed', 'JobsFailing', 'JobsBlocked', 'JobResultsLarge', 'WebhooksDelayed'],
    environment: { JOB_CONCURRENCY: '0' },
    async run(deployment) {
      // Both first: an organization with so many results cannot create another one.
      await deployment.createJob('@tidewater');
      await deployment.createJob('@tidewater');
      await deployment.query(`UPDATE jobs SET state = 'paused', reason = 'upstream_blocked', stored_bytes = 3e10
        WHERE id = (SELECT min(id) FROM jobs)`);
      await deployment.query(`UPDATE jobs SET setbacks = 7, next_run_at = quota_now() - interval '1 hour'
        WHERE state = 'queued'`);
      await deployment.query(`INSERT INTO webhooks (id, organization_id, url, secret, created_at)
        SELECT 'whk_unreadable', id, 'https://example.com/events', decode(repeat('00', 60), 'hex'), quota_now()
        FROM organizations LIMIT 1`);
      await deployment.query(`INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, next_attempt_at)
        SELECT id, 'job.paused', '{}', quota_now(), quota_now() - interval '1 hour' FROM webhooks`);
    },
  },
  overloaded: {
    cause: `The process is suspended for ${SUSPENDED_MS} ms of every ${SUSPENDED_MS + RUNNING_MS}, and holds ${MEMORY_BYTES / 1e9} GB`,
    alerts: ['EventLoopLag', 'MemoryHigh'],
    async run({ service }, signal) {
      await service.fillMemory(MEMORY_BYTES);
      while (!signal.aborted) {
        service.program.signal('SIGSTOP');
        await sleep(SUSPENDED_MS);
        service.program.signal('SIGCONT');
        await sleep(RUNNING_MS);
      }
    },
  },
};

/** Sleeps, but not beyond the signal. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
