// Installs the packages for callers from their tarballs into fresh projects and uses them against the demo whose log is given,
// which must also receive messages over TCP.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PROJECT = join(import.meta.dirname, '..');
const BIN = join(PROJECT, 'node_modules/.bin');
const log = readFileSync(process.argv[2], 'utf8');
const [, baseUrl] = /"(http:\/\/[^/"]+)\/channels/.exec(log);
const [, apiKey] = /Pro key:\s+(ctk_\S+)/.exec(log);
const folder = mkdtempSync(join(tmpdir(), 'channel-transcripts-packages-'));
const npm = (args, cwd) =>
  execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd, encoding: 'utf8' });

const NEST = {
  11: ['@nestjs/common@11.2.10', '@nestjs/core@11.2.10', '@nestjs/microservices@11.2.6'],
  12: ['@nestjs/common@12.5.1', '@nestjs/core@12.5.1', '@nestjs/microservices@12.1.1'],
};
const SHARED = ['@types/node@20.19.43', 'typescript@6.0.3'];
const OF_NEST = ['reflect-metadata@0.2.2', 'rxjs@7.8.2', '@opentelemetry/api@1.9.0'];

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
const CLIENT_LINE = '[2,"channel_not_found"]';
const NEST_LINE = '[2,"channel_not_found","up"]';
const PROJECTS = [
  { name: 'client-esm', extension: 'mts', program: clientProgram, install: [], prints: [CLIENT_LINE] },
  { name: 'client-cjs', extension: 'cts', program: clientProgram, install: [], prints: [CLIENT_LINE] },
  ...Object.entries(NEST).flatMap(([version, packages]) =>
    ['mts', 'cts'].map((extension) => ({
      name: `nest-${version}-${extension}`,
      extension,
      program: nestProgram,
      install: [...packages, ...OF_NEST],
      prints: [NEST_LINE, NEST_LINE],
    })),
  ),
];

try {
  const packed = ['clients/typescript', 'clients/nest'].map((path) => {
    execFileSync(join(BIN, 'publint'), ['--strict', path], { cwd: PROJECT, stdio: 'inherit' });
    execFileSync(join(BIN, 'attw'), ['--pack', path, '--quiet'], { cwd: PROJECT, stdio: 'inherit' });
    const file = npm(['pack', '--silent', '--pack-destination', folder], join(PROJECT, path)).trim().split('\n').at(-1);
    return join(folder, file);
  });
  const [client] = packed;
  for (const { name, extension, program, install, prints } of PROJECTS) {
    const cwd = join(folder, name);
    mkdirSync(cwd);
    writeFileSync(join(cwd, 'package.json'), '{ "private": true }\n');
    writeFileSync(join(cwd, `main.${extension}`), program);
    const tarballs = install.length === 0 ? [client] : packed;
    npm(['install', '--ignore-scripts', ...tarballs, ...install, ...SHARED], cwd);
    const options = ['--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node', '--skipLibCheck'];
    execFileSync(join(cwd, 'node_modules/.bin/tsc'), [...options, `main.${extension}`], { cwd, stdio: 'inherit' });
    const printed = execFileSync(process.execPath, [`main.${extension.replace('ts', 'js')}`], {
      cwd,
      encoding: 'utf8',
    });
    assert.deepEqual(printed.trim().split('\n'), prints, name);
    console.log(`${name}: installed from its tarball, compiled and used`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
