import { ChannelTranscriptsClient, Credential } from '@channel-transcripts/client';
import { ConfigurableModuleBuilder, Module } from '@nestjs/common';
import { ChannelTranscripts } from './channel-transcripts.js';
import { ChannelTranscriptsHealthIndicator, PROBE, type Probe } from './health.js';
import type { ChannelTranscriptsOptions } from './options.js';
import { MessageChannelTranscripts } from './over-messages.js';
import { messageClient, traceHeaders } from './trace-context.js';

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<ChannelTranscriptsOptions>()
  .setExtras({ isGlobal: false }, (definition, { isGlobal }) => ({ ...definition, global: isGlobal }))
  .build();

async function connect(options: ChannelTranscriptsOptions): Promise<ChannelTranscripts> {
  const { transport } = options;
  switch (transport) {
    case 'http':
      return new ChannelTranscriptsClient({ ...options, headers: traceHeaders });
    case 'tcp':
    case 'nats':
      return new MessageChannelTranscripts(
        await messageClient(options),
        new Credential(options),
        options.timeoutSeconds,
      );
    default:
      throw new TypeError(`transport must be http, tcp or nats, but is ${String(transport)}.`);
  }
}

function probeOf(service: ChannelTranscripts): Probe {
  if (service instanceof MessageChannelTranscripts) return () => service.probe();
  if (!(service instanceof ChannelTranscriptsClient)) return () => Promise.resolve(undefined);
  return () =>
    service.ready({ retries: 0, signal: AbortSignal.timeout(5_000) }).then(
      ({ status }) => (status === 'unavailable' ? status : undefined),
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
}

/** Provides `ChannelTranscripts` and `ChannelTranscriptsHealthIndicator`: `register(options)` or `registerAsync({ … })`. */
@Module({
  providers: [
    { provide: ChannelTranscripts, inject: [MODULE_OPTIONS_TOKEN], useFactory: connect },
    { provide: PROBE, inject: [ChannelTranscripts], useFactory: probeOf },
    ChannelTranscriptsHealthIndicator,
  ],
  exports: [ChannelTranscripts, ChannelTranscriptsHealthIndicator],
})
export class ChannelTranscriptsModule extends ConfigurableModuleClass {}
