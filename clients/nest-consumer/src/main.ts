import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { lastValueFrom, tap } from 'rxjs';
import { AppModule } from './app.module.js';
import { isServiceError, TranscriptsClient, type TranscriptsEvent } from './transcripts-client.js';

const { API_KEY } = process.env;
const [, , id, limit = '5'] = process.argv;

function show(event: TranscriptsEvent): void {
  switch (event.type) {
    case 'channel':
      print(`${event.channel.name} (${event.channel.id})`);
      break;
    case 'result': {
      const { videoId, ok, cached, error } = event.result;
      print(`  ${videoId}  ${ok ? (cached ? 'cached' : 'fetched') : (error?.code ?? 'failed')}`);
      break;
    }
    case 'summary':
      print(`${event.summary.succeeded} of ${event.summary.total}, ${event.summary.fetched} charged`);
      break;
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(apiKey: string, channel: string): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
  try {
    await lastValueFrom(
      app
        .get(TranscriptsClient)
        .request({ apiKey, id: channel, limit: Number(limit) })
        .pipe(tap(show)),
    );
  } catch (error) {
    const reason = isServiceError(error) ? `${error.error.code}: ${error.error.message}` : String(error);
    process.stderr.write(`${reason}\n`);
    process.exitCode = 1;
  } finally {
    await app.close();
  }
}

if (API_KEY === undefined || id === undefined) {
  process.stderr.write('Usage: API_KEY=ctk_… npm start -- @handle [limit]\n');
  process.exitCode = 2;
} else {
  await main(API_KEY, id);
}
