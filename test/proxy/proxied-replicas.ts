import { gunzipSync } from 'node:zlib';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { interruptibleLink, type InterruptibleLink } from '../database/interruptible-link.js';
import { type HttpResponse, send as sendTo, type Sending } from '../harness/http-request.js';
import { Program } from '../process/program.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { until } from '../harness/until.js';
import { freePort } from '../harness/free-port.js';
import { NginxServer, type NginxOptions } from './nginx-server.js';

export const ADMIN_TOKEN = 'an-admin-token-of-the-tests-e5a7';

/** One process of the service, with a fixed port and its own link to the database. */
export interface Replica {
  port: number;
  link: InterruptibleLink;
  program: Program;
}

/** Two processes of the service on one database and one fake YouTube, and nginx in front of them. */
export class ProxiedReplicas {
  private readonly others: NginxServer[] = [];

  private constructor(
    readonly database: QuotaDatabase,
    readonly fakeYoutube: FakeYoutube,
    readonly replicas: readonly [Replica, Replica],
    readonly nginx: NginxServer,
  ) {}

  static async start(): Promise<ProxiedReplicas> {
    const database = await QuotaDatabase.open();
    const fakeYoutube = await startFakeYoutube();
    const ports: [number, number] = [await freePort(), await freePort()];
    // Before the processes: it starts without its upstreams, and an error in its configuration leaves no process running.
    const nginx = await NginxServer.start({ replicas: ports });
    const replica = async (port: number): Promise<Replica> => {
      const link = await interruptibleLink(database.url);
      return { port, link, program: run(port, link, fakeYoutube) };
    };
    const replicas: [Replica, Replica] = [await replica(ports[0]), await replica(ports[1])];
    await Promise.all(replicas.map(({ program }) => program.url()));
    return new ProxiedReplicas(database, fakeYoutube, replicas, nginx);
  }

  /** One more nginx in front of the same processes. */
  async anotherNginx(options: Omit<NginxOptions, 'replicas'>): Promise<NginxServer> {
    const nginx = await NginxServer.start({ ...options, replicas: this.replicas.map(({ port }) => port) });
    this.others.push(nginx);
    return nginx;
  }

  /** An organization on the Pro plan with a key. */
  async customer(monthlyLimit: number | null = null): Promise<{ id: string; key: string }> {
    const { organizationId } = await this.database.newCustomer(monthlyLimit);
    const { key } = await this.database.keys.issue({ organizationId });
    return { id: organizationId, key };
  }

  /** Starts a process that has ended once more, and waits until it is ready. */
  async restart(replica: Replica): Promise<void> {
    replica.program = run(replica.port, replica.link, this.fakeYoutube);
    await replica.program.url();
  }

  /** The number of these requests in a replica's log, once all replicas together have logged them. */
  async servedBy(ids: readonly string[], linesExpected = ids.length): Promise<number[]> {
    const counts = (): number[] =>
      this.replicas.map(({ program }) => ids.filter((id) => program.stdout.includes(`"requestId":"${id}"`)).length);
    await until(() => counts().reduce((sum, count) => sum + count, 0) === linesExpected);
    return counts();
  }

  async close(): Promise<void> {
    await Promise.all([this.nginx, ...this.others].map((nginx) => nginx.close()));
    await Promise.all(this.replicas.map(({ program }) => program.stop('SIGKILL')));
    await Promise.all(this.replicas.map(({ link }) => link.close()));
    await this.fakeYoutube.close();
    await this.database.close();
  }
}

function run(port: number, link: InterruptibleLink, fakeYoutube: FakeYoutube): Program {
  return Program.run('main.js', {
    PORT: String(port),
    DATABASE_URL: link.url,
    YOUTUBE_BASE_URL: fakeYoutube.url,
    TRUST_PROXY: '1',
    ADMIN_TOKEN,
    RATE_LIMIT_PER_MINUTE: '0',
    CALLS_PER_KEY: '0',
    CALLS_PER_ORGANIZATION: '0',
    CALLS_PER_PROCESS: '0',
  });
}

/** Sends a request to nginx. The text of a gzip response is decompressed. */
export async function send(
  { port }: NginxServer,
  path: string,
  { method = 'GET', ...options }: Sending & { method?: string } = {},
): Promise<HttpResponse> {
  const response = await sendTo(`http://127.0.0.1:${port}`, method, path, options);
  const zipped = response.headers['content-encoding'] === 'gzip' && response.whole;
  return zipped ? { ...response, text: gunzipSync(response.bytes).toString() } : response;
}
