import { spawn } from 'node:child_process';
import { join } from 'node:path';

export const BENCH = import.meta.dirname;
export const PROJECT = join(BENCH, '../..');

const running = new Set();

/** A program of Node's in a process of its own, with the probe loaded. */
export class Program {
  #questions = 0;
  #waiting = new Map();

  /** @param {{ env?: object, output?: number | 'pipe' }} options */
  constructor(name, args, { env = process.env, output = 'inherit' } = {}) {
    this.name = name;
    this.child = spawn(process.execPath, ['--import', join(BENCH, 'probe.mjs'), ...args], {
      cwd: PROJECT,
      env,
      stdio: ['ignore', output, typeof output === 'number' ? output : 'inherit', 'ipc'],
      // Ctrl-C reaches the bench alone, which then stops its programs in good order.
      detached: true,
      serialization: 'advanced',
    });
    running.add(this);
    this.ended = new Promise((resolve) => this.child.once('exit', resolve)).then(() => {
      running.delete(this);
      for (const { reject } of this.#waiting.values()) reject(new Error(`${name} has ended`));
    });
    this.child.once('error', (error) => process.stderr.write(`${name}: ${error.message}\n`));
    let ready;
    /** Resolves when the program accepts messages; earlier ones would be dropped. */
    this.ready = new Promise((resolve) => (ready = resolve));
    this.child.on('message', ({ id, value, error, ready: isReady }) => {
      if (isReady) return ready();
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(`${name}: ${error}`));
    });
  }

  get hasEnded() {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Sends a message and waits for the reply. */
  ask(message) {
    const id = ++this.#questions;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.child.send({ ...message, id }, (error) => error && reject(error));
    });
  }

  /** Runs an action and measures the resources that the program used for it. */
  async measure(work) {
    await this.ask({ probe: 'start' });
    const value = await work();
    return { value, ...(await this.ask({ probe: 'stop' })) };
  }

  async stop() {
    if (!this.hasEnded) this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), 10_000);
    await this.ended;
    clearTimeout(late);
  }
}

/** Stops whatever still runs, each by its process id. */
export async function stopAll() {
  await Promise.all([...running].map((program) => program.stop()));
}

export function killAll() {
  for (const { child } of running) child.kill('SIGKILL');
}
