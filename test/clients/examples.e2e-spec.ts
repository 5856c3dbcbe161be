import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryFolder } from '../process/program.js';
import { isInstalled } from '../harness/programs.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';

const PROJECT = join(import.meta.dirname, '../..');
const TSC = join(PROJECT, 'node_modules/typescript/bin/tsc');
const run = promisify(execFile);

interface Example {
  name: string;
  language: string;
  code: string;
  prints: string;
}

/** Each code block that is followed by a block with its output. */
function examplesOf(file: string): Example[] {
  const page = readFileSync(join(PROJECT, file), 'utf8');
  const pattern = /```(sh|ts|python)\n([^`]*?(?:`[^`]+`[^`]*?)*)```\n(?:(?!```)[^])*?```text\n([^]*?)```/g;
  return [...page.matchAll(pattern)].map(([whole, language = '', code = '', prints = ''], index) => {
    const line = page.slice(0, page.indexOf(whole)).split('\n').length;
    return { name: `${file}, line ${line}, number ${index + 1}`, language, code, prints };
  });
}

const PAGES = ['docs/examples.md', 'clients/typescript/README.md'];
const EXAMPLES = PAGES.flatMap(examplesOf);
const IN_TYPESCRIPT = EXAMPLES.filter(({ language }) => language === 'ts');
const INSTALLED: Record<string, boolean> = {
  sh: isInstalled('curl'),
  ts: true,
  python: isInstalled('python3'),
};

let service: TestService;
let organization: TestOrganization;
const folder = temporaryFolder();
/** What the compiler reports about the examples in TypeScript, a line for each error. */
let typeErrors: string[] = [];

beforeAll(async () => {
  service = await startService();
  organization = await service.organization();
  mkdirSync(join(folder.path, 'node_modules/@channel-transcripts'), { recursive: true });
  symlinkSync(join(PROJECT, 'clients/typescript'), join(folder.path, 'node_modules/@channel-transcripts/client'));
  writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }');
  typeErrors = await compileExamples();
});
afterAll(async () => {
  await service.close();
  folder.remove();
});

/** The name of the file of an example in TypeScript, without its extension. */
const fileOf = (example: Example): string => `example-${IN_TYPESCRIPT.indexOf(example)}`;

/** Compiles the examples in TypeScript, all at once, and returns the compiler's errors. */
async function compileExamples(): Promise<string[]> {
  const files = IN_TYPESCRIPT.map((example) => `${fileOf(example)}.ts`);
  IN_TYPESCRIPT.forEach(({ code }, index) => writeFileSync(join(folder.path, files[index] ?? ''), code));
  const types = ['--types', 'node', '--typeRoots', join(PROJECT, 'node_modules/@types')];
  const options = ['--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023', ...types];
  return run(process.execPath, [TSC, '--pretty', 'false', ...options, ...files], { cwd: folder.path }).then(
    () => [],
    ({ stdout }: { stdout: string }) => stdout.split('\n'),
  );
}

/** The command that runs an example. */
function command(example: Example): [string, string[]] {
  if (example.language === 'sh') return ['bash', ['-euo', 'pipefail', '-c', example.code]];
  if (example.language === 'python') return ['python3', ['-c', example.code]];
  return [process.execPath, [`${fileOf(example)}.js`]];
}

/** What the page promises, with `…` for anything. */
function promised(prints: string): RegExp {
  const parts = prints.trim().split('…');
  return new RegExp(`^${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^]*?')}$`);
}

describe('the examples in the documents', () => {
  it('exist in every language', () => {
    expect(new Set(EXAMPLES.map(({ language }) => language))).toEqual(new Set(['sh', 'ts', 'python']));
  });

  it.each(PAGES)('(%s) are all followed by their output', (page) => {
    const blocks = readFileSync(join(PROJECT, page), 'utf8').match(/^```(?:sh|ts|python)$/gm) ?? [];
    // The installation command has no output block.
    const calls = blocks.length - (page.startsWith('clients/') ? 1 : 0);
    expect(examplesOf(page)).toHaveLength(calls);
  });

  it.each(EXAMPLES.filter(({ language }) => INSTALLED[language]))(
    'print their documented output ($name)',
    async (example) => {
      const { PATH = '', HOME = '' } = process.env;
      const env = { PATH, HOME, BASE_URL: service.url, KEY: organization.key };
      const [program, given] = command(example);
      expect(typeErrors.filter((line) => line.startsWith(`${fileOf(example)}.ts`))).toEqual([]);
      const { stdout } = await run(program, given, { cwd: folder.path, env, maxBuffer: 20_000_000 });
      expect(stdout.trim()).toMatch(promised(example.prints));
    },
  );
});
