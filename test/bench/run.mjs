import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { cached } from './parts/cached.mjs';
import { cold } from './parts/cold.mjs';
import { due } from './parts/due.mjs';
import { follow } from './parts/follow.mjs';
import { growth } from './parts/growth.mjs';
import { library } from './parts/library.mjs';
import { overload } from './parts/overload.mjs';
import { survival } from './parts/survival.mjs';
import { BENCH, killAll, stopAll } from './processes.mjs';
import { print, printConditions } from './report.mjs';
import { startServer } from '../database/programs/server.mjs';
import { makeKey } from './environment.mjs';

const PARTS = { cold, cached, overload, survival, growth, library, follow, due };
const MINUTES_MAX = 30;
const RUNS = 5;

/** The programs beside the service are no dependencies of it. */
function installPeers() {
  const options = ['--prefix', BENCH, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['ci', ...options], { stdio: ['ignore', 'ignore', 'inherit'] });
}

function readOptions() {
  const { only, runs, quick } = new Command('npm run bench --')
    .option('--only <parts>', 'some parts, separated by commas', partsOf, Object.keys(PARTS))
    .option('--runs <number>', `runs of each figure, whose median is reported; ${RUNS} by default`, runsOf)
    .option('--quick', 'small sizes and one run: whether the bench works, no figures to quote', false)
    .parse()
    .opts();
  return { only, quick, runs: runs ?? (quick ? 1 : RUNS) };
}

function partsOf(names) {
  const parts = names.split(',');
  if (parts.every((part) => Object.hasOwn(PARTS, part))) return parts;
  throw new InvalidArgumentError(`The parts are ${Object.keys(PARTS).join(', ')}.`);
}

function runsOf(text) {
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
}

async function main() {
  const { only, quick, runs } = readOptions();
  installPeers();
  const startedAt = performance.now();
  const folder = await mkdtemp(join(tmpdir(), 'channel-transcripts-bench-'));
  await chmod(folder, 0o711);
  let database;
  let ending = false;
  const end = async (exitCode) => {
    if (ending) return;
    ending = true;
    await stopAll();
    await database?.stop();
    await rm(folder, { recursive: true, force: true });
    process.exit(exitCode);
  };
  process.on('exit', killAll);
  process.on('SIGINT', () => void end(130));
  process.on('SIGTERM', () => void end(143));
  setTimeout(() => {
    process.stderr.write(`bench: not done after ${MINUTES_MAX} minutes, given up\n`);
    void end(1);
  }, MINUTES_MAX * 60_000).unref();
  try {
    const dataDir = join(folder, 'postgres');
    await mkdir(dataDir);
    database = await startServer(dataDir, []);
    const bench = {
      folder,
      databaseUrl: database.url,
      runs,
      quick,
      key: await makeKey(database.url),
      say: (line) =>
        process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${line}\n`),
    };
    const failures = [];
    for (const part of only) {
      bench.say(part);
      const report = await PARTS[part](bench);
      print(report);
      failures.push(...(report.failures ?? []));
    }
    printConditions(runs);
    for (const failure of failures) process.stderr.write(`bench: ${failure}\n`);
    bench.say('done');
    await end(failures.length === 0 ? 0 : 1);
  } catch (error) {
    if (!ending) process.stderr.write(`bench: ${error instanceof Error ? error.stack : String(error)}\n`);
    await end(1);
  }
}

await main();
