import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../harness/free-port.js';
import { temporaryFolder } from '../process/program.js';
import { isInstalled } from '../harness/programs.js';
import { until } from '../harness/until.js';

const PROGRAM = 'nginx';
const CONFIGURATION = join(import.meta.dirname, '../../deploy/nginx.conf');

export const nginxIsInstalled = isInstalled(PROGRAM);

/** Where the configuration passes a call on; a call that is tried again never decodes. */
const FORWARDED = '%2F included.\n            proxy_pass http://service;';

export interface NginxOptions {
  /** Ports of this machine on which the replicas listen, now or later. */
  replicas: readonly number[];
  /** With a path of its own in `proxy_pass` nginx decodes what the caller sent, and merges its slashes. */
  decoding?: boolean;
  /** Further replacements in the configuration, each of a text that it contains exactly once. */
  changes?: readonly (readonly [from: string, to: string])[];
}

/** nginx with the project's configuration, in which ports, file paths and the settings of a test are replaced. */
export class NginxServer {
  /** What it has written to its error log so far. */
  errors = '';

  private constructor(
    readonly port: number,
    private readonly child: ChildProcess,
    private readonly folder: { path: string; remove(): void },
  ) {}

  static async start(options: NginxOptions): Promise<NginxServer> {
    const folder = temporaryFolder();
    const port = await freePort();
    const file = join(folder.path, 'nginx.conf');
    writeFileSync(file, configurationFor(options, port, folder.path));
    const child = spawn(PROGRAM, ['-e', 'stderr', '-c', file, '-g', 'daemon off;'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const server = new NginxServer(port, child, folder);
    child.stderr.on('data', (chunk: Buffer) => (server.errors += chunk.toString()));
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`${PROGRAM} ended before it listened: ${server.errors}`);
      // A path that nginx does not pass on, so that no replica sees the request.
      return fetch(`${server.url}/metrics`).then(
        () => true,
        () => false,
      );
    });
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** One line per response so far. */
  get log(): string {
    return readFileSync(join(this.folder.path, 'access.log'), 'utf8');
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.child.once('close', resolve));
    this.child.kill('SIGTERM');
    await closed;
    this.folder.remove();
  }
}

function configurationFor(options: NginxOptions, port: number, folder: string): string {
  const { replicas, decoding = false } = options;
  const servers = replicas.map((replica) => `server 127.0.0.1:${replica} max_fails=0;`).join(' ');
  const changes: (readonly [string, string])[] = [
    ['listen 8080;', `listen 127.0.0.1:${port};`],
    // The parameter that repeats name lookups needs nginx 1.27.3; there are no names here.
    ['server service:3000 resolve max_fails=0;', servers],
    ['access_log /dev/stdout', `access_log ${folder}/access.log`],
    ...(decoding ? [[FORWARDED, FORWARDED.replace(';', '/;')] as const] : []),
    ...(options.changes ?? []),
  ];
  const shipped = readFileSync(CONFIGURATION, 'utf8').replaceAll(' /tmp/nginx', ` ${folder}/nginx`);
  return changes.reduce((text, [from, to]) => {
    if (text.split(from).length !== 2) throw new Error(`deploy/nginx.conf must have this exactly once: ${from}`);
    return text.replace(from, () => to);
  }, shipped);
}
