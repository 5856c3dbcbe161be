import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube, type FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { ChaosRun } from '../../chaos-run.js';
import { startDatabase, type Database } from '../../harness/database.js';
import { Redis } from '../../harness/redis.js';
import { type Customer, Service, type ServiceResponse } from '../../harness/service.js';

export const METRICS_TOKEN = 'chaos-tests-metrics-token-5e0b7c41a9d2';

/** What a deployment has beside its fake YouTube. */
export interface DeploymentOptions {
  environment?: Readonly<Record<string, string>>;
  /** Services on the same database; default 1. */
  replicas?: number;
  /** A PostgreSQL of its own, which can be stopped. */
  ownDatabase?: boolean;
  redis?: boolean;
}

/** A service with its own fake YouTube, so that a fault in it affects no other. */
export class Deployment {
  private channels = 0;

  private constructor(
    readonly services: readonly Service[],
    readonly fakeYoutube: FakeYoutube,
    readonly customer: Customer,
    /** Runs a statement on the database of the services. */
    readonly query: (statement: string) => Promise<Record<string, unknown>[]>,
    private readonly ownDatabase: Database | undefined,
    private readonly ownRedis: Redis | undefined,
  ) {}

  /** @param folder an existing directory of its own */
  static async start(chaosRun: ChaosRun, folder: string, options: DeploymentOptions): Promise<Deployment> {
    const fakeYoutube = await startFakeYoutube({ seed: chaosRun.seed });
    const database = options.ownDatabase ? await startDatabase(folder, 'postgres', ['fsync=off']) : undefined;
    const redis = options.redis ? await Redis.start(folder) : undefined;
    const server = database ?? chaosRun.database;
    const databaseUrl = await server.create();
    const environment = {
      DATABASE_URL: databaseUrl,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      METRICS_TOKEN,
      ...(redis && { REDIS_URL: redis.url }),
      ...options.environment,
    };
    const first = await Service.start(folder, environment);
    const services = [first];
    while (services.length < (options.replicas ?? 1)) services.push(await Service.start(folder, environment));
    const query = (statement: string) => server.query(databaseUrl, statement);
    return new Deployment(services, fakeYoutube, await first.customer(), query, database, redis);
  }

  get service(): Service {
    const [first] = this.services;
    if (!first) throw new Error('A deployment has a service.');
    return first;
  }

  get database(): Database {
    if (!this.ownDatabase) throw new Error('This deployment has no database of its own.');
    return this.ownDatabase;
  }

  get redis(): Redis {
    if (!this.ownRedis) throw new Error('This deployment has no Redis.');
    return this.ownRedis;
  }

  /** Calls for a channel that was not called for before. */
  coldCall(videos = 1): Promise<ServiceResponse> {
    this.channels += 1;
    return this.service.get(`/channels/@bench-${videos}x${this.channels}/transcripts`, this.customer.key);
  }

  /** Creates an archive job. */
  async createJob(channel: string): Promise<void> {
    const headers = { Authorization: `Bearer ${this.customer.key}`, 'Content-Type': 'application/json' };
    const response = await fetch(`${this.service.url}/jobs`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ channel }),
    });
    if (response.status !== 202) throw new Error(`The creation of a job is answered ${response.status}.`);
  }

  /** Makes cold calls, one after the other and at most ten a second, until the signal. */
  async callUntil(signal: AbortSignal, videos = 1): Promise<void> {
    while (!signal.aborted) {
      await this.coldCall(videos);
      await sleep(100);
    }
  }

  async stop(): Promise<void> {
    this.fakeYoutube.reset();
    for (const service of this.services) service.program.signal('SIGCONT');
    // Without its database a service waits for the settlements that it cannot make.
    await Promise.all(this.services.map((service) => service.stop('SIGKILL')));
    await this.fakeYoutube.close();
    await this.ownRedis?.stop();
    await this.ownDatabase?.stop();
  }
}
