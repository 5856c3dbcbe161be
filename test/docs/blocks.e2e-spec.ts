import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { parse as parseYaml } from 'yaml';
import { freePort } from '../harness/free-port.js';
import { isInstalled } from '../harness/programs.js';
import { startService, type TestService } from '../harness/service.js';
import { temporaryFolder } from '../process/program.js';
import { type Block, blocksOf, PAGES, PROJECT, proseOf } from './pages.js';

const TSC = join(PROJECT, 'node_modules/typescript/bin/tsc');
const run = promisify(execFile);

/** The programs that a block is run by. */
const PROGRAMS: Record<string, string[]> = { sh: ['curl', 'jq'], python: ['python3'] };
const CHECKED_ONLY = ['js', 'json', 'yaml', 'sql', 'toml', 'mermaid', 'text'];

/** The shell blocks that are marked as not run, by their first words: they need another machine, a registry, or hours. */
const NOT_RUN: [page: string, begin: string][] = [
  ['CONTRIBUTING.md', 'npm run lint &&'],
  ['README.md', 'npm ci && npm run demo'],
  ['README.md', 'npm ci && npm run build && node dist/main.js'],
  ['docs/deployment.md', 'docker compose exec'],
  ['docs/deployment.md', 'docker compose build'],
  ['docs/deployment.md', 'sql() { docker compose'],
  ['docs/deployment.md', 'docker compose stop'],
  ['docs/deployment.md', 'kubectl create'],
  ['docs/mcp.md', 'claude mcp add'],
  ['docs/operations.md', 'pg_dump'],
  ['docs/performance.md', 'npm ci'],
  ['docs/reliability.md', 'npm test'],
  ['clients/typescript/README.md', 'npm install @channel-transcripts/client'],
  ['clients/nest/README.md', 'npm install @channel-transcripts/nest'],
  ['clients/nest-consumer/README.md', 'npm install && npm run build:clients'],
  ['clients/python/README.md', 'pip install'],
  ['test/fake-youtube/README.md', 'npm run fake-youtube'],
];

/** What stands around a part of a program in TypeScript, which is a block without an import. */
const AROUND_PARTS = `
import type { ChannelTranscriptsClient } from '@channel-transcripts/client';
import type { ClientProxy } from '@nestjs/microservices';
declare const client: ChannelTranscriptsClient & Pick<ClientProxy, 'send'>;
declare const id: string, apiKey: string, after: string;
declare const signal: AbortSignal;
declare function store(...values: unknown[]): Promise<void>;
`;
/** Packages that the pages use and this project does not. */
const OTHER_PACKAGES = `
declare module '@nestjs/config' {
  export class ConfigModule { static forRoot(options: { isGlobal: boolean }): { module: typeof ConfigModule } }
  export class ConfigService { getOrThrow<T>(name: string): T }
}
`;

const BLOCKS = PAGES.flatMap(blocksOf);
const isPart = ({ language, code }: Block): boolean => language === 'ts' && !code.startsWith('import ');
const isStep = (block: Block): boolean =>
  ['sh', 'ts', 'python'].includes(block.language) && block.isRun && block.file === undefined && !isPart(block);
const RUN_PAGES = [...new Set(BLOCKS.filter(isStep).map(({ page }) => page))];
/** `it` where the programs of a page are installed. */
const itWith = (page: string): typeof it | typeof it.skip => {
  const needed = BLOCKS.filter((block) => block.page === page).flatMap(({ language }) => PROGRAMS[language] ?? []);
  return needed.every(isInstalled) ? it : it.skip;
};

let service: TestService;
let receiverPort: number;
let typeErrors: string;
const folder = temporaryFolder();
const folderOf = (page: string): string => join(folder.path, page.replaceAll(/\W/g, '-'));
const fileOf = (block: Block): string =>
  block.file ?? `line-${/\d+$/.exec(block.name)?.[0]}.${block.language === 'python' ? 'py' : block.language}`;

beforeAll(async () => {
  receiverPort = await freePort();
  service = await startService({
    environment: { WEBHOOK_SECRET_KEY: ['w'.repeat(32)], WEBHOOK_ALLOW_PRIVATE: true },
  });
  for (const page of PAGES) prepareFolder(page);
  typeErrors = await compile();
});
afterAll(async () => {
  await service.close();
  folder.remove();
});

/** Addresses of the pages, which are those of this test. */
const adapted = (text: string): string =>
  text.replaceAll('http://127.0.0.1:4000', service.fakeYoutube.url).replaceAll(/\b8080\b/g, String(receiverPort));

/** A folder for the blocks of a page, with the scripts of the package beside it: they run what is built. */
function prepareFolder(page: string): void {
  const target = folderOf(page);
  mkdirSync(target);
  for (const name of ['dist', 'dist-tools', 'node_modules']) symlinkSync(join(PROJECT, name), join(target, name));
  symlinkSync(join(PROJECT, 'clients/python/src/channel_transcripts'), join(target, 'channel_transcripts'));
  const { scripts } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const built = Object.entries(scripts).map(([name, script]) => [name, name.startsWith('build') ? 'true' : script]);
  const manifest = { type: 'module', scripts: Object.fromEntries(built) as Record<string, string> };
  writeFileSync(join(target, 'package.json'), JSON.stringify(manifest));
  for (const block of BLOCKS.filter((each) => each.page === page)) {
    mkdirSync(dirname(join(target, fileOf(block))), { recursive: true });
    writeFileSync(join(target, fileOf(block)), (isPart(block) ? AROUND_PARTS : '') + adapted(block.code));
  }
}

/** Compiles the blocks in TypeScript, all at once, and returns the compiler's errors. */
async function compile(): Promise<string> {
  writeFileSync(join(folder.path, 'packages.d.ts'), OTHER_PACKAGES);
  const files = BLOCKS.filter(({ language }) => language === 'ts').map((block) =>
    join(folderOf(block.page), fileOf(block)),
  );
  const types = ['--types', 'node', '--typeRoots', join(PROJECT, 'node_modules/@types')];
  const options = ['--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023', ...types];
  const decorators = ['--experimentalDecorators', '--emitDecoratorMetadata'];
  return run(process.execPath, [TSC, '--pretty', 'false', ...options, ...decorators, 'packages.d.ts', ...files], {
    cwd: folder.path,
  }).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  );
}

interface Ran {
  /** What each block printed, as far as the page was run. */
  outputs: string[];
  stderr: string;
}

/** What a reader has: the programs, and the variables that the page names. */
async function variables(page: string): Promise<Record<string, string>> {
  const { PATH = '', HOME = '' } = process.env;
  const { key } = await service.organization();
  const known = { BASE_URL: service.url, KEY: key, YOUTUBE_BASE_URL: service.fakeYoutube.url };
  const ofPython = { CHANNEL_TRANSCRIPTS_URL: service.url, CHANNEL_TRANSCRIPTS_KEY: key };
  const all = Object.entries({ ...known, ...ofPython, DATABASE_URL: service.databaseUrl });
  const prose = proseOf(page);
  return {
    PATH,
    HOME,
    PYTHONDONTWRITEBYTECODE: '1',
    ...Object.fromEntries(all.filter(([name]) => new RegExp(`\`${name}\\b`).test(prose))),
  };
}

/** Runs the blocks of a page one after another in one shell, which ends at the first command that fails. */
async function runPage(page: string): Promise<Ran> {
  await service.app.get<Cache>(CACHE_MANAGER).clear();
  service.fakeYoutube.reset();
  // The page shows what the doctor finds then.
  if (page === 'docs/youtube.md')
    service.fakeYoutube.setFaults({ kind: 'retired-reason', match: { client: 'VISIONOS' } });
  const steps = BLOCKS.filter((block) => block.page === page && isStep(block)).map((block) => {
    const file = fileOf(block);
    if (block.language === 'sh') return `. ./${file}`;
    return block.language === 'ts' ? `node ${file.replace(/ts$/, 'js')}` : `python3 ${file}`;
  });
  const script = [
    'set -euo pipefail',
    "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT",
    ...steps.map((step) => `${step}\nprintf '\\036'`),
  ].join('\n');
  const options = { cwd: folderOf(page), env: await variables(page), maxBuffer: 20_000_000 };
  const { stdout, stderr } = await run('bash', ['-c', script], options).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return { outputs: stdout.split('\u001e').slice(0, -1), stderr };
}

/** What the page promises, with `…` for anything. The spaces of JSON mean nothing. */
function expectPrinted(output: string, prints: string): void {
  const isJson = prints.startsWith('{\n');
  const [actual, expected] = [output, adapted(prints)].map((text) =>
    isJson ? text.replaceAll(/\s/g, '') : text.trim(),
  );
  const parts = (expected ?? '').split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  expect(actual).toMatch(new RegExp(`^${parts.join('[^]*?')}$`));
}

describe('the blocks of the pages', () => {
  it('have a language that a test runs or checks', () => {
    const known = ['sh', 'ts', 'python', ...CHECKED_ONLY];
    expect(BLOCKS.filter(({ language }) => !known.includes(language)).map(({ name }) => name)).toEqual([]);
  });

  it('are run, but for these', () => {
    const marked = BLOCKS.filter(({ isRun }) => !isRun);
    expect(marked.map(({ page, code }) => [page, code.split('\n')[0]])).toEqual(
      NOT_RUN.map(([page, begin]) => [page, expect.stringMatching(`^${begin.replaceAll(/[()]/g, '\\$&')}`)]),
    );
    expect(marked.filter(({ language }) => language !== 'sh')).toEqual([]);
  });

  it('in TypeScript are accepted by the compiler', () => {
    expect(BLOCKS.filter(isPart).length).toBeGreaterThan(0);
    expect(typeErrors).toBe('');
  });

  it.each(BLOCKS.filter(({ language }) => language === 'json'))('are JSON ($name)', ({ code }) => {
    expect(() => void JSON.parse(code)).not.toThrow();
  });

  it.each(BLOCKS.filter(({ language }) => language === 'yaml'))('are YAML ($name)', ({ code }) => {
    expect(parseYaml(code)).toMatchObject({ scrape_configs: expect.any(Array) });
  });

  it.each(BLOCKS.filter(({ language }) => language === 'sql'))(
    'are accepted by the database ($name)',
    async ({ code }) => {
      for (const statement of code.split(';').filter((each) => each.trim() !== '')) await service.query(statement);
    },
  );
});

describe('the script for cron', () => {
  const page = 'docs/following.md';
  itWith(page)('says why the service refused it', async () => {
    const env = { ...(await variables(page)), SUBSCRIPTION: 'sub_unknown' };
    const refused = run('sh', ['follow.sh'], { cwd: folderOf(page), env });
    await expect(refused).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('"subscription_not_found"'),
    });
  });
});

describe.each(RUN_PAGES)('%s, pasted into a shell', (page) => {
  let ran: Ran;
  beforeAll(async () => {
    ran = await runPage(page);
  });

  itWith(page).each(
    BLOCKS.filter((block) => block.page === page && isStep(block)).map((block, index) => ({ ...block, index })),
  )('prints what it says ($name)', ({ index, prints }) => {
    const output = ran.outputs[index];
    // The output of a page that ended before this block is undefined.
    expect({ output, errors: output === undefined && ran.stderr }).toEqual({
      output: expect.any(String),
      errors: false,
    });
    expectPrinted(output ?? '', prints ?? '');
  });
});
