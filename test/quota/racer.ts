import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Customer } from './quota-database.js';

/** A process of its own that races for the quotas of customers, a transcript at a time. */
export class Racer {
  private constructor(
    private readonly child: ChildProcess,
    private readonly lines: AsyncIterator<string, unknown>,
  ) {}

  /** Resolves when the process has its connections open and waits for a race. */
  static async prepare(url: string): Promise<Racer> {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'race-process.mjs'), url], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const racer = new Racer(child, createInterface({ input: child.stdout })[Symbol.asyncIterator]());
    await racer.nextLine();
    return racer;
  }

  /** @param attempts without end when 0 */
  start(customer: Customer, attempts: number): void {
    this.child.stdin?.write(`${JSON.stringify({ ...customer, attempts })}\n`);
  }

  async nextLine(): Promise<string> {
    const next = await this.lines.next();
    if (next.done === true) throw new Error('The process ended early.');
    return next.value;
  }

  /** How many of its attempts were granted, when it has made them all. */
  async granted(): Promise<number> {
    const result: unknown = JSON.parse(await this.nextLine());
    if (typeof result !== 'object' || result === null || !('granted' in result)) throw new Error('Not a result.');
    return Number(result.granted);
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
  }
}
