import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { freePort } from '../harness/free-port.js';
import { until } from '../harness/until.js';
import { temporaryFolder } from './program.js';

const PROJECT = join(import.meta.dirname, '../..');
const { scripts } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

let folder: ReturnType<typeof temporaryFolder>;
let npm: ChildProcess | undefined;

beforeEach(() => {
  folder = temporaryFolder();
  // The scripts as they are, on what is built: a build would replace the programs of the tests that run beside this one.
  const built = Object.keys(scripts).filter((name) => name.startsWith('build'));
  const unbuilt = { ...scripts, ...Object.fromEntries(built.map((name) => [name, 'true'])) };
  writeFileSync(join(folder.path, 'package.json'), JSON.stringify({ type: 'module', scripts: unbuilt }));
  for (const name of ['dist', 'dist-tools', 'node_modules']) symlinkSync(join(PROJECT, name), join(folder.path, name));
});
afterEach(() => {
  // The whole group, which has more than npm in it when a test has failed.
  if (npm?.pid !== undefined && npm.stdout?.closed === false) process.kill(-npm.pid, 'SIGKILL');
  folder.remove();
});

/** Starts a script and resolves to the text that it prints, once that matches. */
async function start(script: string, printed: RegExp, variables: Record<string, string> = {}): Promise<string[]> {
  const { PATH = '', HOME = '' } = process.env;
  npm = spawn('npm', ['run', script], {
    cwd: folder.path,
    env: { PATH, HOME, TMPDIR: folder.path, SHUTDOWN_DELAY_SECONDS: '0', ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(npm, 'close').then(() => Promise.reject(new Error(`It ended: ${output}`)));
  ended.catch(() => undefined);
  await Promise.race([until(() => printed.test(output)), ended]);
  return [...(printed.exec(output) ?? [])];
}

/** Stops npm alone, as a supervisor does, and waits until no process is left that can write to its output. */
async function stopNpm(): Promise<void> {
  if (!npm) return;
  const closed = once(npm, 'close');
  npm.kill('SIGTERM');
  await closed;
}

const isRefused = (url: string): Promise<boolean> =>
  fetch(url).then(
    () => false,
    () => true,
  );

describe('SIGTERM to npm', () => {
  it('ends the service of `npm start` and its PostgreSQL', async () => {
    const data = join(folder.path, 'data');
    const variables = { HOST: '127.0.0.1', PORT: '0', DATA_DIR: data };
    const [, url = ''] = await start('start', /"event":"listening","url":"([^"]+)"/, variables);
    expect(existsSync(join(data, 'postgres/postmaster.pid'))).toBe(true);
    await stopNpm();
    expect(await isRefused(url)).toBe(true);
    expect(existsSync(join(data, 'postgres/postmaster.pid'))).toBe(false);
  });

  it.each(['demo', 'start:dev'])(
    'ends `npm run %s`: its service, fake YouTube and PostgreSQL, and it listened where PORT and HOST say',
    async (script) => {
      const port = String(await freePort());
      const printed = /(http:\/\/\S+)\/docs[^]* export BASE_URL=\1 KEY=ctk_\S+\n[^]* DATA_DIR=(\S+) [^]*Ctrl-C/;
      const [, url = '', data = ''] = await start(script, printed, { PORT: port, HOST: '127.0.0.2' });
      expect(url).toBe(`http://127.0.0.2:${port}`);
      expect((await fetch(`${url}/health/ready`)).status).toBe(200);
      expect(existsSync(join(data, 'postgres/postmaster.pid'))).toBe(true);
      await stopNpm();
      expect(await isRefused(url)).toBe(true);
      expect(existsSync(data)).toBe(false);
    },
  );

  it('ends the fake YouTube', async () => {
    const [, url = ''] = await start('fake-youtube', /listens at (\S+)\n[^]*Ctrl-C/);
    await stopNpm();
    expect(await isRefused(url)).toBe(true);
  });

  it('reaches every program that a script runs after a build: it replaces the shell', () => {
    const last = Object.entries(scripts).map(([name, script]) => ({
      name,
      command: script.split('&& ').slice(1).at(-1),
    }));
    const programs = last.filter(({ command }) => command && /\b(?:node (?:dist|test)|npm run jest)\b/.test(command));
    expect(programs.length).toBeGreaterThan(8);
    expect(programs.filter(({ command }) => !command?.startsWith('exec ')).map(({ name }) => name)).toEqual([]);
  });
});
