import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { send, type HttpResponse } from '../../harness/http-request.js';
import { at } from './transcripts.js';
import { until } from './until.js';

const run = promisify(execFile);

/** The project's root, relative to the output directory of the tools. */
const PROJECT = join(import.meta.dirname, '../../../..');

export const ADMIN_TOKEN = 'chaos-tests-admin-token-f1c07d93be5a';
const STOP_MS = 60_000;

const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

export interface Customer {
  id: string;
  key: string;
}

let services = 0;

/** `node dist/main.js` as in production, on a free port, with the rate limits turned off. It ends with this process. */
export class Service {
  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
    private readonly environment: NodeJS.ProcessEnv,
    readonly logFile: string,
  ) {}

  /** Starts it and waits until it listens. */
  static async start(folder: string, variables: Record<string, string>): Promise<Service> {
    const { PATH, HOME } = process.env;
    const environment: NodeJS.ProcessEnv = {
      PATH,
      HOME,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      CALLS_PER_KEY: '0',
      CALLS_PER_ORGANIZATION: '0',
      CALLS_PER_PROCESS: '0',
      SHUTDOWN_DELAY_SECONDS: '0',
      ADMIN_TOKEN,
      ...variables,
    };
    const logFile = join(folder, `service-${++services}.log`);
    const log = openSync(logFile, 'a');
    const args = ['--import', join(PROJECT, 'test/chaos/harness/probe.mjs'), join(PROJECT, 'dist/main.js')];
    // Detached: Ctrl-C reaches only the chaos tests, which then stop their programs.
    const stdio = ['ignore', log, log, 'ipc'] as const;
    const child = spawn(process.execPath, args, { env: environment, stdio: [...stdio], detached: true });
    closeSync(log);
    running.add(child);
    child.once('exit', () => running.delete(child));
    let url: string | undefined;
    await until(
      'The service listens',
      async () => {
        url = /"event":"listening","url":"([^"]+)"/.exec(await readFile(logFile, 'utf8'))?.[1];
        return url !== undefined || hasEnded(child);
      },
      60_000,
    );
    if (url === undefined) throw new Error(`The service did not start:\n${await readFile(logFile, 'utf8')}`);
    return new Service(child, url, environment, logFile);
  }

  /** Creates an organization and a key for it. */
  async customer(plan: 'free' | 'pro' = 'pro', monthlyLimit = 1_000_000): Promise<Customer> {
    const { id } = (await this.admin('POST', '/organizations', { name: 'Chaos', plan, monthlyLimit })) as Customer;
    const { key } = (await this.admin('POST', `/organizations/${id}/keys`, {})) as Customer;
    return { id, key };
  }

  /** Calls a route below `/admin`, which is a hundred times faster than a command. @throws when it is refused */
  async admin(method: string, path: string, content?: object): Promise<unknown> {
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' };
    const sending = { headers, body: JSON.stringify(content), timeoutMs: 20_000 };
    const { status, text, body } = await send(this.url, method, `/admin${path}`, sending);
    if (status >= 300) throw new Error(`${method} /admin${path} answers ${status}: ${text}`);
    return body;
  }

  /** Runs an admin command. @throws with its output when it fails */
  async command(...args: string[]): Promise<unknown> {
    const command = [join(PROJECT, 'dist/cli.js'), ...args, '--json'];
    const { stdout } = await run(process.execPath, command, { env: this.environment });
    return JSON.parse(stdout);
  }

  get(path: string, key?: string, timeoutMs?: number): Promise<HttpResponse> {
    const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    return send(this.url, 'GET', path, { headers, timeoutMs });
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
    await this.probe({ ms });
  }

  /** Memory outside of the heap of V8 (the bytes of Buffers) that a collection of garbage leaves. */
  async collectedBufferBytes(): Promise<number> {
    return Number(at(await this.probe({}), 'arrayBufferBytes'));
  }

  /** Sends a message to the probe and returns its answer. One at a time. */
  private async probe(message: object): Promise<unknown> {
    const { child } = this;
    return new Promise<unknown>((resolve, reject) => {
      const ended = (): void => reject(new Error('The service ended before it answered the probe.'));
      child.once('exit', ended);
      child.once('message', (answer) => {
        child.off('exit', ended);
        resolve(answer);
      });
      child.send(message, (error) => error && reject(error));
    });
  }

  /** Maximum memory since its start. `process.resourceUsage()` would include that of the parent process. */
  async peakMegabytes(): Promise<number> {
    const status = await readFile(`/proc/${this.child.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1000;
  }

  async log(): Promise<string> {
    return readFile(this.logFile, 'utf8');
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Terminates it and waits; throws when it had to be killed. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    const { child } = this;
    if (!hasEnded(child)) {
      const ended = once(child, 'exit');
      child.kill(signal);
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(late);
      if (child.signalCode === 'SIGKILL' && signal !== 'SIGKILL') {
        throw new Error(`The service did not end within ${STOP_MS / 1000} s of ${signal}.`);
      }
    }
    return { code: child.exitCode, signal: child.signalCode };
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
