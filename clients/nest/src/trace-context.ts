import { context, propagation } from '@opentelemetry/api';
import type { ClientProxy, Serializer } from '@nestjs/microservices';
import type { ChannelTranscriptsOptions } from './options.js';

/** The trace context of the running code, as headers: those of the propagator that the program has set up. */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  return headers;
}

/** Adds the trace context to a message over TCP, in the field from which Nest's server reads it. */
const withTraceContext: Serializer = {
  serialize: (packet: object) => ({ ...packet, metadata: traceHeaders() }),
};

/** Nest copies these headers into each message over NATS. The values are read then. */
const NATS_HEADERS = {
  get traceparent(): string {
    return traceHeaders()['traceparent'] ?? '';
  },
  get tracestate(): string {
    return traceHeaders()['tracestate'] ?? '';
  },
};

/** Nest's client for messages. Its package is loaded only here, because a program over HTTP need not have it. */
export async function messageClient(
  options: Extract<ChannelTranscriptsOptions, { transport: 'tcp' | 'nats' }>,
): Promise<ClientProxy> {
  const { ClientProxyFactory, Transport } = await import('@nestjs/microservices');
  return ClientProxyFactory.create(
    options.transport === 'tcp'
      ? { transport: Transport.TCP, options: { port: 3001, ...options.connection, serializer: withTraceContext } }
      : { transport: Transport.NATS, options: { ...options.connection, headers: NATS_HEADERS } },
  );
}
