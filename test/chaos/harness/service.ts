import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Program, PROJECT } from './program.js';
import { until } from './until.js';

const run = promisify(execFile);

export const ADMIN_TOKEN = 'chaos-tests-admin-token-f1c07d93be5a';

/** An HTTP response; `body` is undefined unless it is JSON. `whole` is true when the response is complete. */
export interface ServiceResponse {
  status: number;
  headers: IncomingHttpHeaders;
  /** The body as it was sent, which may be compressed; `text` and `body` are of one that is not. */
  bytes: Buffer;
  text: string;
  body: unknown;
  whole: boolean;
  ms: number;
}

export interface Customer {
  id: string;
  key: string;
}

let services = 0;

/** `node dist/main.js` as in production, on a free port, with the rate limits turned off. */
export class Service {
  private constructor(
    readonly program: Program,
    readonly url: string,
    readonly environment: Record<string, string>,
    readonly logFile: string,
  ) {}

  /** Starts it and waits until it listens. */
  static async start(folder: string, variables: Record<string, string>): Promise<Service> {
    const logFile = join(folder, `service-${++services}.log`);
    const environment = {
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      CALLS_PER_KEY: '0',
      CALLS_PER_PROCESS: '0',
      SHUTDOWN_DELAY_SECONDS: '0',
      ADMIN_TOKEN,
      ...variables,
    };
    const probe = join(PROJECT, 'test/chaos/harness/probe.mjs');
    const args = ['--import', probe, join(PROJECT, 'dist/main.js')];
    const program = Program.start(process.execPath, args, { environment, logFile, ipc: true });
    let url = '';
    await until(
      'The service listens',
      async () => {
        if (program.hasEnded) return true;
        url = /"event":"listening","url":"([^"]+)"/.exec(await readFile(logFile, 'utf8'))?.[1] ?? '';
        return url !== '';
      },
      60_000,
    );
    if (url === '') throw new Error(`The service did not start:\n${await readFile(logFile, 'utf8')}`);
    return new Service(program, url, environment, logFile);
  }

  /** Creates an organization and a key for it. */
  async customer(plan: 'free' | 'pro' = 'pro', monthlyLimit = 1_000_000): Promise<Customer> {
    const { id } = (await this.admin('POST', '/organizations', { name: 'Chaos', plan, monthlyLimit })) as Customer;
    const { key } = (await this.admin('POST', `/organizations/${id}/keys`, {})) as Customer;
    return { id, key };
  }

  /** Calls a route below `/admin`, which is a hundred times faster than a command. @throws when it is refused */
  async admin(method: string, path: string, body?: object): Promise<unknown> {
    // A kept-alive connection would be counted as one that the service leaks.
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json', Connection: 'close' };
    const response = await fetch(`${this.url}/admin${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} /admin${path} answers ${response.status}: ${await response.text()}`);
    return response.json();
  }

  /** Runs an admin command. @throws with its output when it fails */
  async command(...args: string[]): Promise<unknown> {
    const { PATH = '', HOME = '' } = process.env;
    const env = { PATH, HOME, ...this.environment };
    const { stdout } = await run(process.execPath, [join(PROJECT, 'dist/cli.js'), ...args, '--json'], { env });
    return JSON.parse(stdout);
  }

  get(
    path: string,
    key?: string,
    options: { timeoutMs?: number; headers?: Record<string, string> } = {},
  ): Promise<ServiceResponse> {
    const headers = { ...(key !== undefined && { Authorization: `Bearer ${key}` }), ...options.headers };
    return send(this.url, 'GET', path, headers, options.timeoutMs);
  }

  async metrics(): Promise<Map<string, number>> {
    const { text } = await this.get('/metrics', this.environment['METRICS_TOKEN']);
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
    );
  }

  /** Advances its monotonic clock, which ends pauses and expires entries at once. Timers are not affected. */
  async skip(ms: number): Promise<void> {
    await this.request({ ms });
  }

  /** One request at a time. */
  private request(question: object): Promise<unknown> {
    const { child } = this.program;
    return new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error('The service ended before it answered the probe.'));
      child.once('exit', ended);
      child.once('message', (response) => {
        child.off('exit', ended);
        resolve(response);
      });
      child.send(question, (error) => error && reject(error));
    });
  }

  /** Maximum memory since its start. `process.resourceUsage()` would include that of the parent process. */
  async peakMegabytes(): Promise<number> {
    const status = await readFile(`/proc/${this.program.child.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1000;
  }

  async log(): Promise<string> {
    return readFile(this.logFile, 'utf8');
  }

  stop(signal?: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    return this.program.stop(signal);
  }
}

/** Sends one request on its own connection and reads the response; rejects when there is none. */
export function send(
  base: string,
  method: string,
  path: string,
  headers: Record<string, string> | string[] = {},
  timeoutMs = 120_000,
  content?: Buffer,
): Promise<ServiceResponse> {
  const { hostname, port } = new URL(base);
  const startedAtMs = performance.now();
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      const end = (whole: boolean): void => {
        clearTimeout(timer);
        const bytes = Buffer.concat(chunks);
        const text = bytes.toString();
        const { statusCode: status = 0 } = response;
        const ms = performance.now() - startedAtMs;
        resolve({ status, headers: response.headers, bytes, text, body: parsed(text), whole, ms });
      };
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('end', () => end(response.complete));
      response.on('error', () => end(false));
    });
    const timer = setTimeout(() => request.destroy(new Error(`no end within ${timeoutMs} ms`)), timeoutMs);
    // A request can fail twice: after the first error its connection can still be reset.
    request.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    request.end(content);
  });
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
