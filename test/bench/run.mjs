import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cached } from './parts/cached.mjs';
import { cold } from './parts/cold.mjs';
import { survival } from './parts/survival.mjs';
import { BENCH, killAll, stopAll } from './processes.mjs';
import { print, printConditions } from './report.mjs';
import { startServer } from '../database/programs/server.mjs';
import { makeKey } from './environment.mjs';

const PARTS = { cold, cached, survival };
const MINUTES_MAX = 20;
const RUNS = 5;
const HELP = `Usage: npm run bench -- [options]

  --only PART,…   any of ${Object.keys(PARTS).join(', ')}
  --runs N        runs of each figure; the median is reported; default ${RUNS}
  --quick         small sizes and one run: whether the bench works, no figures to quote
`;

/** The programs beside the service are no dependencies of it. */
function installPeers() {
  const options = ['--prefix', BENCH, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['ci', ...options], { stdio: ['ignore', 'ignore', 'inherit'] });
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      runs: { type: 'string' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    process.exit(0);
  }
  const parts = values.only?.flatMap((names) => names.split(',')) ?? Object.keys(PARTS);
  const runs = Number(values.runs ?? (values.quick ? 1 : RUNS));
  const { quick } = values;
  const invalid = parts.some((part) => !Object.hasOwn(PARTS, part)) || !(Number.isInteger(runs) && runs > 0);
  if (invalid) {
    process.stderr.write(HELP);
    process.exit(2);
  }
  return { parts, runs, quick };
}

async function main() {
  const options = readOptions();
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
      ...{ folder, databaseUrl: database.url, runs: options.runs, quick: options.quick },
      key: await makeKey(database.url),
      say: (line) =>
        process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${line}\n`),
    };
    for (const part of options.parts) {
      bench.say(part);
      print(await PARTS[part](bench));
    }
    printConditions(options.runs);
    bench.say('done');
    await end(0);
  } catch (error) {
    if (!ending) process.stderr.write(`bench: ${error instanceof Error ? error.stack : String(error)}\n`);
    await end(1);
  }
}

await main();
