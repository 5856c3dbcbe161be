import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startFakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import { Program, PROJECT } from '../../harness/program.js';
import { Service, type ServiceResponse } from '../../harness/service.js';
import { settledState } from '../../harness/settled.js';
import { atOnce, until } from '../../harness/until.js';
import { equal, nothing, type Check, type ChaosRun } from '../../chaos-run.js';
import { bookOf, type Findings } from './findings.js';

const run = promisify(execFile);
const MEGABYTE = Buffer.alloc(2 ** 20, 'x');
const CALLS_MAX = 1_500;

/** A small file system mounted at `path` until `release`. */
async function mountDisk(path: string, megabytes: number, ...options: string[]): Promise<() => Promise<void>> {
  await mkdir(path, { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', [`size=${megabytes}m`, 'mode=0711', ...options].join(), 'chaos', path]);
  const letGo = (): void => {
    endPostgres(path);
    spawnSync('umount', ['-l', path]);
  };
  // Also when the chaos tests are killed.
  process.on('exit', letGo);
  return async () => {
    await run('umount', [path]).catch(letGo);
    process.off('exit', letGo);
  };
}

/** DATA_DIR on a disk that is read-only, too small, or fills up while the service runs on its embedded database. */
export async function disk(chaosRun: ChaosRun): Promise<Findings> {
  const { folder } = chaosRun;
  if (process.getuid?.() !== 0)
    return { rows: [['a full and a read-only disk', 'left out: only root can mount one']], checks: [] };
  const readOnly = await refusedStart(folder, 'read-only', 4, 'ro');
  const tooSmall = await refusedStart(folder, 'small', 12);
  const { rows, checks } = await fillingUp(chaosRun);
  return {
    rows: [['DATA_DIR on a read-only disk', readOnly.line], ['DATA_DIR on a disk of 12 MB', tooSmall.line], ...rows],
    checks: [
      {
        name: 'a read-only DATA_DIR ends the start with 1 and one line with the reason',
        observed: readOnly.line,
        passed: readOnly.passed && /read-only/.test(readOnly.line),
      },
      {
        name: 'a full DATA_DIR ends the start with 1 and one line with the reason',
        observed: tooSmall.line,
        passed: tooSmall.passed && /space|full/i.test(tooSmall.line),
      },
      ...checks,
    ],
  };
}

/** The first line of PostgreSQL's lock file is its process ID. */
function endPostgres(dataDir: string): void {
  try {
    const [pid] = readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n');
    process.kill(Number(pid), 'SIGQUIT');
  } catch {
    // It does not exist.
  }
}

async function refusedStart(
  folder: string,
  name: string,
  megabytes: number,
  ...options: string[]
): Promise<{ line: string; passed: boolean }> {
  const path = join(folder, `disk-${name}`);
  const release = await mountDisk(path, megabytes, ...options);
  try {
    const logFile = join(folder, `disk-${name}.log`);
    const environment = { HOST: '127.0.0.1', PORT: '0', DATA_DIR: path };
    const program = Program.start(process.execPath, [join(PROJECT, 'dist/main.js')], { environment, logFile });
    const { code } = await program.ended;
    const lines = (await readFile(logFile, 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith('channel-transcripts:'));
    return {
      line: lines.join(' / ').replaceAll(path, 'DATA_DIR'),
      passed: code === 1 && lines.length === 1 && lines[0]?.includes(path) === true,
    };
  } finally {
    await release();
  }
}

async function fillingUp({ folder, say }: ChaosRun): Promise<Findings> {
  const path = join(folder, 'disk-filling');
  const release = await mountDisk(path, 160);
  const fakeYoutube = await startFakeYoutube();
  let service: Service | undefined;
  try {
    service = await Service.start(folder, {
      DATA_DIR: path,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      UPLOADS_TTL_SECONDS: '1',
    });
    const running = service;
    const customer = await service.customer();
    const responses: ServiceResponse[] = [];
    const request = async (number: number): Promise<void> => {
      responses.push(await running.get(`/channels/@bench-2x${number}/transcripts`, customer.key));
    };
    await request(1);
    const filler = join(path, 'filler');
    await fill(filler);
    say('the disk is full');
    const refused = (): number => responses.filter(({ status }) => status === 503).length;
    await atOnce(
      Array.from({ length: CALLS_MAX }, (_, index) => index + 2),
      8,
      async (number) => {
        if (refused() < 20) await request(number);
      },
    );
    const during = responses.length - 1;
    await rm(filler);
    const freedAtMs = performance.now();
    await until('The service responds again', async () => {
      await request(9_000 + (responses.length % 900));
      return responses.at(-1)?.status === 200;
    }).catch(() => undefined);
    const recoveredMs = performance.now() - freedAtMs;
    const fetched = responses.reduce(
      (sum, { status, body }) =>
        sum + (status === 200 ? (body as { summary: { fetched: number } }).summary.fetched : 0),
      0,
    );
    const recovered = responses.at(-1)?.status;
    const settled = /settlement_given_up|settlement_forfeited/.test(await service.log());
    await until(
      'Nothing is reserved',
      async () => bookOf(await running.admin('GET', `/organizations/${customer.id}/usage?verify=true`)).reserved === 0,
      90_000,
      500,
    ).catch(() => undefined);
    const book = bookOf(await service.command('usage', customer.id, '--verify'));
    const odd = responses.filter(({ status, whole }) => !whole || (status !== 200 && status !== 503));
    const checks: Check[] = [
      {
        name: 'calls on a full disk continue until some are refused',
        observed: `${during} calls, ${refused()} × 503`,
        passed: refused() > 0,
      },
      nothing(
        'responses other than 200 and 503 while the disk is full',
        odd.map(({ status, text }) => `${status} ${text.slice(0, 200)}`),
      ),
      equal('status of a call when space is available again, without a restart', recovered, 200),
      {
        name: 'transcripts charged: at most those in the responses, and all of them unless a settlement was given up',
        observed: `${book.used} of ${fetched}`,
        passed: settled ? book.used <= fetched : book.used === fetched,
      },
      equal('`usage --verify` is exact, and nothing is reserved', [book.exact, book.reserved], [true, 0]),
      ...(await settledState(service, 'after a full disk')),
      equal('the service exits with 0', await service.stop(), { code: 0, signal: null }),
    ];
    return {
      rows: [
        [
          'a disk that fills up',
          `${during} calls, of them ${refused()} × 503; 200 again ${(recoveredMs / 1000).toFixed(1)} s after there was room`,
        ],
      ],
      checks,
    };
  } finally {
    await service?.stop('SIGKILL').catch(() => undefined);
    await until('PostgreSQL ends after the service', () => !existsSync(join(path, 'postgres/postmaster.pid'))).catch(
      () => undefined,
    );
    await fakeYoutube.close();
    await release();
  }
}

async function fill(path: string): Promise<void> {
  const file = await open(path, 'w');
  try {
    for (;;) await file.write(MEGABYTE);
  } catch {
    // Full.
  } finally {
    await file.close();
  }
}
