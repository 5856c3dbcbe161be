import 'reflect-metadata';
import {
  ChannelTranscripts,
  ChannelTranscriptsModule,
  isChannelTranscriptsError,
  type ChannelTranscriptsOptions,
} from '@channel-transcripts/nest';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const { API_KEY: apiKey = '', TRANSPORT = 'http', BASE_URL: baseUrl = 'http://127.0.0.1:3000' } = process.env;
const { MESSAGE_HOST: host = '127.0.0.1', MESSAGE_PORT = '3001', NATS_URL = 'nats://127.0.0.1:4222' } = process.env;
const [, , channel, limit = '5'] = process.argv;

const TRANSPORTS: Record<string, ChannelTranscriptsOptions> = {
  http: { transport: 'http', baseUrl, apiKey },
  tcp: { transport: 'tcp', apiKey, connection: { host, port: Number(MESSAGE_PORT) } },
  nats: { transport: 'nats', apiKey, connection: { servers: [NATS_URL] } },
};

const options = TRANSPORTS[TRANSPORT];

const print = (line: string): void => void process.stdout.write(`${line}\n`);

@Injectable()
class Printer {
  constructor(private readonly channelTranscripts: ChannelTranscripts) {}

  /** Prints each video of a channel as it finishes, then the counts. */
  async print(id: string): Promise<void> {
    for await (const event of this.channelTranscripts.events(id, { limit: Number(limit) })) {
      if (event.type === 'channel') print(`${event.channel.name} (${event.channel.id})`);
      if (event.type === 'summary') print(`${event.summary.succeeded} of ${event.summary.total} succeeded`);
      if (event.type !== 'result') continue;
      const { videoId, ok, cached, error } = event.result;
      print(`  ${videoId}  ${ok ? (cached ? 'cached' : 'fetched') : error?.code}`);
    }
  }
}

if (apiKey === '' || channel === undefined || options === undefined) {
  process.stderr.write('Usage: API_KEY=ctk_… TRANSPORT=http|tcp|nats npm start -- @handle [limit]\n');
  process.exit(2);
}

@Module({ imports: [ChannelTranscriptsModule.registerAsync({ useFactory: () => options })], providers: [Printer] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
try {
  await app.get(Printer).print(channel);
} catch (error) {
  process.stderr.write(`${isChannelTranscriptsError(error) ? `${error.code}: ${error.message}` : String(error)}\n`);
  process.exitCode = 1;
} finally {
  await app.close();
}
