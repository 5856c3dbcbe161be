import type { ConsumerDeserializer, IncomingEvent, IncomingRequest } from '@nestjs/microservices';
import { fieldsOf } from './transcripts-message.js';

/** The id is repeated beside every event of the answer. */
const ID_CHARACTERS_MAX = 128;
/** Nest parses a pattern, and walks through what it finds. */
const PATTERN_CHARACTERS_MAX = 128;

/** What Nest's transports carry, read from outside data. */
export interface MessagePacket {
  /** None for a message that wants no answer. */
  id: string | undefined;
  pattern: string;
  data: unknown;
  /** Where a sender puts trace headers. */
  metadata: object;
}

/** Reads one; undefined when the value is none. A pattern that this service cannot have becomes an empty one. */
export function readPacket(value: unknown): MessagePacket | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { id, pattern, data, metadata }: Partial<Record<string, unknown>> = { ...value };
  if (pattern === undefined && data === undefined) return undefined;
  if (id !== undefined && !(typeof id === 'string' && id.length <= ID_CHARACTERS_MAX)) return undefined;
  const known = typeof pattern === 'string' && pattern.length <= PATTERN_CHARACTERS_MAX;
  return { id, pattern: known ? pattern : '', data, metadata: fieldsOf(metadata) };
}

/** Bytes that are no message. */
export class NotAMessageError extends Error {}

/**
 * Reads messages for Nest, and takes the content out of one that wants no answer, so that it is refused: like HEAD over
 * HTTP it would do the work, spend quota and return nothing.
 */
export class PacketDeserializer implements ConsumerDeserializer {
  /**
   * @param parse what the transport hands over, as JSON
   * @param hasReply whether there is a place to answer to, by what the transport tells
   */
  constructor(
    private readonly parse: (value: unknown) => unknown,
    private readonly hasReply: (options: Readonly<Record<string, unknown>>) => boolean,
  ) {}

  /** @throws NotAMessageError */
  deserialize(value: unknown, options: Readonly<Record<string, unknown>> = {}): IncomingRequest | IncomingEvent {
    const packet = readPacket(this.parse(value));
    if (!packet) throw new NotAMessageError();
    const { id, pattern, data, metadata } = packet;
    if (id === undefined) return { pattern, data: undefined };
    return { id, pattern, data: this.hasReply(options) ? data : undefined, metadata: { ...metadata } };
  }
}
