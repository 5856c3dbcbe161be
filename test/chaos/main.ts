import { rmSync } from 'node:fs';
import { chmod, mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { database } from './parts/database.js';
import { follow } from './parts/follow.js';
import { fuzz } from './parts/fuzz.js';
import { jobs } from './parts/jobs.js';
import { memory } from './parts/memory.js';
import { crashes } from './parts/crashes.js';
import { upstream } from './parts/upstream.js';
import { startDatabase } from './harness/database.js';
import type { Check, Part } from './chaos-run.js';

const PARTS: Readonly<Record<string, Part>> = { fuzz, upstream, database, crashes, jobs, follow, memory };

/** Mostly waits, for recoveries and leases: the short form runs it beside the others. The whole run measures each alone. */
const WAITING: string = 'database';

const MINUTES_MAX = 50;

interface Options {
  only: string[];
  short: boolean;
  seed: number;
}

function readOptions(): Options {
  return new Command('npm run chaos --')
    .description('Injects faults into the service, on this machine only, and reports whether it keeps its guarantees.')
    .option('--only <parts>', 'some parts, separated by commas', partsOf, Object.keys(PARTS))
    .option('--short', 'a reduced run that takes some minutes', false)
    .option('--seed <number>', 'of all random choices; printed at the start', seedOf, Math.floor(Math.random() * 1e9))
    .parse()
    .opts<Options>();
}

function partsOf(names: string): string[] {
  const parts = names.split(',');
  if (parts.every((part) => Object.hasOwn(PARTS, part))) return parts;
  throw new InvalidArgumentError(`The parts are ${Object.keys(PARTS).join(', ')}.`);
}

function seedOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number.');
}

async function main(): Promise<number> {
  const { only: parts, short, seed } = readOptions();
  const startedAtMs = performance.now();
  const say = (line: string): void => {
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(0);
    process.stderr.write(`${seconds.padStart(5)} s  ${line}\n`);
  };
  say(`seed ${seed}`);
  setTimeout(() => {
    process.stderr.write(`chaos: aborted after ${MINUTES_MAX} minutes\n`);
    process.exit(1);
  }, MINUTES_MAX * 60_000).unref();
  const folder = await mkdtemp(join(tmpdir(), 'channel-transcripts-chaos-'));
  await chmod(folder, 0o711);
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const stop = (code: number) => (): void => process.exit(code);
  process.on('SIGINT', stop(130)).on('SIGTERM', stop(143));
  const database = await startDatabase(folder, 'postgres', [
    'fsync=off',
    'synchronous_commit=off',
    'max_connections=300',
  ]);
  const results = new Map<string, readonly Check[]>();
  const runInTurn = async (names: readonly string[]): Promise<void> => {
    for (const name of names) {
      const part = PARTS[name];
      if (!part) continue;
      say(name);
      const own = join(folder, name);
      await mkdir(own, { recursive: true, mode: 0o711 });
      const checks = await part({ short, seed, folder: own, database, say: (line) => say(`${name}: ${line}`) });
      const lines = checks.map((check) => `${check.passed ? 'passed' : 'FAILED'}  ${check.name}: ${check.observed}\n`);
      process.stdout.write(`\n== ${name} ==\n${lines.join('')}`);
      say(`${name} ends`);
      results.set(name, checks);
    }
  };
  try {
    const waiting = short ? parts.filter((name) => name === WAITING) : [];
    const others = parts.filter((name) => !waiting.includes(name));
    const ends = await Promise.allSettled([runInTurn(waiting), runInTurn(others)]);
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  } finally {
    await database.stop();
  }
  process.stdout.write('\n');
  for (const [name, own] of results) {
    process.stdout.write(`${name}: ${own.filter(({ passed }) => passed).length} of ${own.length}\n`);
  }
  const checks = [...results.values()].flat();
  const failed = checks.filter(({ passed }) => !passed).length;
  const minutes = ((performance.now() - startedAtMs) / 60_000).toFixed(0);
  process.stdout.write(`Node ${process.versions.node}, seed ${seed}, ${minutes} minutes\n`);
  process.stdout.write(`\n${checks.length - failed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`chaos: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
