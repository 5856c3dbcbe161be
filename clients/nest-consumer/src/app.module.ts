import { Module } from '@nestjs/common';
import { ClientsModule, Transport, type ClientProvider } from '@nestjs/microservices';
import { CONNECTION, TranscriptsClient } from './transcripts-client.js';

/** Reads the transport and the address from the environment variables of the service. */
function connection(): ClientProvider {
  const { MESSAGE_TRANSPORT, MESSAGE_HOST = '127.0.0.1', MESSAGE_PORT = '3001', NATS_URL } = process.env;
  return MESSAGE_TRANSPORT === 'nats'
    ? { transport: Transport.NATS, options: { servers: [NATS_URL ?? 'nats://127.0.0.1:4222'] } }
    : { transport: Transport.TCP, options: { host: MESSAGE_HOST, port: Number(MESSAGE_PORT) } };
}

@Module({
  imports: [ClientsModule.registerAsync([{ name: CONNECTION, useFactory: connection }])],
  providers: [TranscriptsClient],
})
export class AppModule {}
