// Installs the packages for callers from their tarballs into fresh projects and uses them against the demo whose log is given,
// which must also receive messages over TCP.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import pLimit from 'p-limit';

const PROJECT = join(import.meta.dirname, '..');
const BIN = join(PROJECT, 'node_modules/.bin');
const log = readFileSync(process.argv[2], 'utf8');
const [, baseUrl] = /"(http:\/\/[^/"]+)\/channels/.exec(log);
const [, apiKey] = /Pro key:\s+(ctk_\S+)/.exec(log);
const folder = mkdtempSync(join(tmpdir(), 'channel-transcripts-packages-'));
const run = promisify(execFile);
const npm = async (args, cwd) =>
  (await run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd })).stdout;
/** Each spends half of its time on one core and half on the registry. */
const PROJECTS_AT_A_TIME = 3;

/** Each version with the kind of modules of its new projects. */
const NEST = {
  11: {
    nest: ['@nestjs/common@11.2.10', '@nestjs/core@11.2.10'],
    messages: '@nestjs/microservices@11.2.6',
    module: 'cts',
  },
  12: {
    nest: ['@nestjs/common@12.5.1', '@nestjs/core@12.5.1'],
    messages: '@nestjs/microservices@12.1.1',
    module: 'mts',
  },
};
const SHARED = ['@types/node@20.19.43', 'typescript@6.0.3'];
const OF_NEST = ['@nestjs/config@12.0.1', 'reflect-metadata@0.2.2', 'rxjs@7.8.2', '@opentelemetry/api@1.9.0'];

const clientProgram = `
import { ChannelTranscriptsClient, isChannelTranscriptsError } from '@channel-transcripts/client';
async function main(): Promise<void> {
  const client = new ChannelTranscriptsClient({ baseUrl: '${baseUrl}', apiKey: '${apiKey}' });
  const { summary } = await client.transcripts('@tidewater', { limit: 2 });
  const code = await client.transcripts('@no-such-channel').catch((error: unknown) => isChannelTranscriptsError(error) && error.code);
  console.log(JSON.stringify([summary.succeeded, code]));
}
void main();
`;
const nestProgram = `
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { ChannelTranscripts, ChannelTranscriptsHealthIndicator, ChannelTranscriptsModule, isChannelTranscriptsError, type ChannelTranscriptsOptions } from '@channel-transcripts/nest';
const apiKey = '${apiKey}';
const all: ChannelTranscriptsOptions[] = [
  { transport: 'http', baseUrl: '${baseUrl}', apiKey },
  { transport: 'tcp', apiKey, connection: { host: '127.0.0.1', port: 3001 } },
];
class Program {}
async function main(): Promise<void> {
  for (const options of all) {
    const imports = [ChannelTranscriptsModule.registerAsync({ useFactory: () => options })];
    const program = await NestFactory.createApplicationContext({ module: Program, imports }, { logger: ['error'] });
    const transcripts = program.get(ChannelTranscripts);
    const { summary } = await transcripts.transcripts('@tidewater', { limit: 2 });
    const code = await transcripts.uploads('@no-such-channel').catch((error: unknown) => isChannelTranscriptsError(error) && error.code);
    const health = await program.get(ChannelTranscriptsHealthIndicator).isHealthy('transcripts');
    console.log(JSON.stringify([summary.succeeded, code, health.transcripts?.status]));
    await program.close();
  }
}
void main();
`;
const [, readmeProgram, readmePrints] = /```ts\n([^]*?)```\n\n```text\n([^]*?)\n```/.exec(
  readFileSync(join(PROJECT, 'clients/nest/README.md'), 'utf8'),
);
const CLIENT_LINE = '[2,"channel_not_found"]';
const NEST_LINE = '[2,"channel_not_found","up"]';
const PROJECTS = [
  { name: 'client-esm', extension: 'mts', program: clientProgram, install: [], prints: [CLIENT_LINE] },
  { name: 'client-cjs', extension: 'cts', program: clientProgram, install: [], prints: [CLIENT_LINE] },
  ...Object.entries(NEST).flatMap(([version, { nest, messages, module }]) => [
    // Without the package for messages, which HTTP does not need.
    {
      name: `nest-${version}-readme`,
      extension: module,
      program: readmeProgram,
      install: [...nest, ...OF_NEST],
      prints: readmePrints.split('\n'),
    },
    ...['mts', 'cts'].map((extension) => ({
      name: `nest-${version}-${extension}`,
      extension,
      program: nestProgram,
      install: [...nest, messages, ...OF_NEST],
      prints: [NEST_LINE, NEST_LINE],
    })),
  ]),
];

/** Packs both packages as from a clean clone, where nothing is built; returns their files. */
function pack() {
  for (const path of ['clients/typescript', 'clients/nest']) {
    rmSync(join(PROJECT, path, 'dist'), { recursive: true, force: true });
  }
  const output = execFileSync('npm', ['run', '--silent', 'clients:pack'], { cwd: PROJECT, encoding: 'utf8' });
  return output
    .trim()
    .split('\n')
    .map((file) => {
      const moved = join(folder, basename(file));
      renameSync(file, moved);
      return moved;
    });
}

/** Publishing from the folder would send the same files as the packed ones. */
async function comparePublished(path, tarball) {
  const published = JSON.parse(
    await npm(['publish', '--dry-run', '--json', '--access', 'public'], join(PROJECT, path)),
  );
  const { files } = published.files ? published : Object.values(published)[0];
  const packed = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n');
  assert.ok(packed.includes('package/dist/esm/index.js') && packed.includes('package/dist/cjs/index.d.ts'), path);
  assert.deepEqual(files.map((file) => `package/${file.path}`).sort(), packed.sort(), path);
}

/** Installs the tarballs into a fresh project, compiles its program and runs it. */
async function tryProject({ name, extension, program, install, prints }, tarballs) {
  const cwd = join(folder, name);
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'package.json'), '{ "private": true }\n');
  writeFileSync(join(cwd, `main.${extension}`), program);
  await npm(['install', '--ignore-scripts', ...tarballs, ...install, ...SHARED], cwd);
  const options = ['--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node', '--skipLibCheck'];
  if (install.length > 0) options.push('--experimentalDecorators', '--emitDecoratorMetadata');
  // What does not compile is in the output.
  await run(join(cwd, 'node_modules/.bin/tsc'), [...options, `main.${extension}`], { cwd }).catch((error) => {
    throw new Error(`${name}: ${error.stdout}${error.stderr}`);
  });
  const { stdout } = await run(process.execPath, [`main.${extension.replace('ts', 'js')}`], {
    cwd,
    env: { ...process.env, TRANSCRIPTS_URL: baseUrl, TRANSCRIPTS_KEY: apiKey },
  });
  assert.deepEqual(stdout.trim().split('\n'), prints, name);
  console.log(`${name}: installed from its tarball, compiled and used`);
}

try {
  const packed = pack();
  const [client, nest] = packed;
  await comparePublished('clients/typescript', client);
  await comparePublished('clients/nest', nest);
  for (const file of packed) {
    execFileSync(join(BIN, 'publint'), ['--strict', file], { cwd: PROJECT, stdio: 'inherit' });
    execFileSync(join(BIN, 'attw'), [file, '--quiet'], { cwd: PROJECT, stdio: 'inherit' });
  }
  const limit = pLimit(PROJECTS_AT_A_TIME);
  await Promise.all(
    PROJECTS.map((project) => limit(() => tryProject(project, project.install.length === 0 ? [client] : packed))),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
