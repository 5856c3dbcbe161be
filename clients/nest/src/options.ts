import type { ClientOptions, CredentialOptions } from '@channel-transcripts/client';
import type { NatsOptions, TcpClientOptions } from '@nestjs/microservices';

interface MessageOptions extends CredentialOptions {
  /** How long to wait for the next event of a call; 120 seconds by default. */
  timeoutSeconds?: number;
}

/** How to reach the service. */
export type ChannelTranscriptsOptions =
  | ({ transport: 'http' } & Omit<ClientOptions, 'headers'>)
  /** `MESSAGE_TRANSPORT=tcp` of the service; `connection` has `host`, `port`, and what Nest's client takes besides. */
  | ({ transport: 'tcp'; connection?: TcpClientOptions['options'] } & MessageOptions)
  /** `MESSAGE_TRANSPORT=nats` of the service; `connection` has `servers`, and what Nest's client takes besides. */
  | ({ transport: 'nats'; connection?: NatsOptions['options'] } & MessageOptions);
