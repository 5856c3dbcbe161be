import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../free-port.js';
import { Program } from './program.js';
import { until } from './until.js';

const PROGRAM = 'prometheus';

/** What a Prometheus collects and evaluates. */
export interface PrometheusOptions {
  /** The base URLs of the services, by job. */
  jobs: ReadonlyMap<string, readonly string[]>;
  metricsToken: string;
  /** The text of the rule file. */
  rules: string;
  /** Between two scrapes, and between two evaluations of the rules. */
  intervalSeconds: number;
}

/** A series of a query's answer, with its samples. */
export interface Series {
  labels: Readonly<Record<string, string>>;
  samples: readonly { atSeconds: number; value: number }[];
}

export interface Alert {
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
  state: 'pending' | 'firing';
}

interface QueryResult {
  result: { metric: Record<string, string>; values?: [number, string][]; value?: [number, string] }[];
}

/** @throws when Prometheus is not installed, with the command that installs it */
export function requirePrometheus(): void {
  if (spawnSync(PROGRAM, ['--version']).error)
    throw new Error('prometheus is not installed. Install it with: apt-get install prometheus');
}

/** A Prometheus server with its own data directory. */
export class Prometheus {
  private constructor(
    private readonly program: Program,
    private readonly url: string,
  ) {}

  /** @throws when it refuses the rules */
  static async start(folder: string, options: PrometheusOptions): Promise<Prometheus> {
    const own = join(folder, 'prometheus');
    await mkdir(own);
    const interval = `${options.intervalSeconds}s`;
    const configuration = {
      global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
      rule_files: ['rules.yml'],
      scrape_configs: [...options.jobs].map(([job, urls]) => ({
        job_name: job,
        authorization: { credentials: options.metricsToken },
        static_configs: [{ targets: urls.map((url) => new URL(url).host) }],
      })),
    };
    await writeFile(join(own, 'rules.yml'), options.rules);
    // JSON is YAML.
    await writeFile(join(own, 'prometheus.yml'), JSON.stringify(configuration));
    const port = await freePort();
    const args = [
      `--config.file=${join(own, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(own, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    const program = Program.start(PROGRAM, args, { logFile: join(folder, 'prometheus.log') });
    const prometheus = new Prometheus(program, `http://127.0.0.1:${port}`);
    await until('Prometheus is ready', async () => {
      if (program.hasEnded) return true;
      return (await fetch(`${prometheus.url}/-/ready`)).ok;
    });
    if (program.hasEnded) throw new Error(`Prometheus did not start; see ${join(folder, 'prometheus.log')}.`);
    return prometheus;
  }

  /** The answer now; one sample per series. @throws when the query is invalid */
  async query(query: string): Promise<Series[]> {
    return series((await this.get('query', { query })) as QueryResult);
  }

  /** The answers between two times. @throws when the query is invalid */
  async queryRange(query: string, range: { start: number; end: number; stepSeconds: number }): Promise<Series[]> {
    const { start, end, stepSeconds } = range;
    const parameters = { query, start: String(start), end: String(end), step: String(stepSeconds) };
    return series((await this.get('query_range', parameters)) as QueryResult);
  }

  /** The pending and firing alerts. */
  async alerts(): Promise<Alert[]> {
    return ((await this.get('alerts')) as { alerts: Alert[] }).alerts;
  }

  async stop(): Promise<void> {
    await this.program.stop();
  }

  private async get(path: string, parameters: Record<string, string> = {}): Promise<unknown> {
    const response = await fetch(`${this.url}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`);
    const body = (await response.json()) as { status: string; data: unknown; error?: string };
    if (body.status !== 'success') throw new Error(`${parameters['query'] ?? path}: ${body.error}`);
    return body.data;
  }
}

function series({ result }: QueryResult): Series[] {
  return result.map(({ metric, values, value }) => ({
    labels: metric,
    samples: (values ?? (value ? [value] : [])).map(([atSeconds, text]) => ({ atSeconds, value: Number(text) })),
  }));
}
