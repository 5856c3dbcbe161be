import type { ConsumerDeserializer, IncomingEvent, IncomingRequest } from '@nestjs/microservices';
import { TranscriptsQueryDto } from '../channels/dto/transcripts-query.dto.js';
import { InvalidRequestError, type InvalidField } from '../domain/errors.js';
import { StrictValidationPipe } from '../http/validation.js';

/** Every event of a response repeats the ID. */
const ID_CHARACTERS_MAX = 128;
/** Nest parses a pattern as JSON and traverses the result. */
const PATTERN_CHARACTERS_MAX = 128;

/** The envelope of a message in Nest's transports. */
export interface MessagePacket {
  /** Undefined for a message that requests no response. */
  id: string | undefined;
  pattern: string;
  data: unknown;
  /** Contains the trace headers of the sender. */
  metadata: object;
}

/** Reads an envelope; undefined when the value is none. A pattern that this service cannot have becomes an empty one. */
export function readPacket(value: unknown): MessagePacket | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { id, pattern, data, metadata }: Partial<Record<string, unknown>> = { ...value };
  if (pattern === undefined && data === undefined) return undefined;
  if (id !== undefined && !(typeof id === 'string' && id.length <= ID_CHARACTERS_MAX)) return undefined;
  const known = typeof pattern === 'string' && pattern.length <= PATTERN_CHARACTERS_MAX;
  return { id, pattern: known ? pattern : '', data, metadata: fieldsOf(metadata) };
}

/** The bytes are no message. */
export class NotAMessageError extends Error {}

/**
 * Reads envelopes for Nest. Removes the data of a message that requests no response, so that it is refused: like HEAD
 * over HTTP it would spend quota and return nothing.
 */
export class PacketDeserializer implements ConsumerDeserializer {
  /**
   * @param parse parses what the transport received as JSON
   * @param hasReply whether the transport has a reply address for the message
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

/** The parameters of a message. */
export interface TranscriptsMessage {
  id: string;
  query: TranscriptsQueryDto;
}

const ID_MISSING: InvalidField = {
  field: 'id',
  message: 'id must be a string: the handle, the ID or the URL of a channel.',
};

/** Identifies the caller; read before the parameters. */
const CALLER_FIELDS = new Set(['apiKey', 'requestId']);

const pipe = new StrictValidationPipe();

/** The fields of a message; none when it is no JSON object. */
export function fieldsOf(message: unknown): Readonly<Record<string, unknown>> {
  return typeof message === 'object' && message !== null && !Array.isArray(message) ? { ...message } : {};
}

/**
 * Reads the parameters of a message by the rules of the HTTP query. As JSON has both, `limit` may be a number and
 * `languages` a list.
 *
 * @throws InvalidRequestError naming every field that is wrong or unknown
 */
export async function readTranscriptsMessage(message: unknown): Promise<TranscriptsMessage> {
  const { id, ...others } = fieldsOf(message);
  const parameters = Object.fromEntries(Object.entries(others).filter(([name]) => !CALLER_FIELDS.has(name)));
  const query: unknown = await pipe
    .transform(asQuery(parameters), { type: 'query', metatype: TranscriptsQueryDto })
    .catch((error: unknown) => {
      if (typeof id === 'string' || !(error instanceof InvalidRequestError)) throw error;
      throw new InvalidRequestError([ID_MISSING, ...error.details]);
    });
  if (typeof id !== 'string') throw new InvalidRequestError([ID_MISSING]);
  if (!(query instanceof TranscriptsQueryDto)) throw new Error('The validation pipe returned no query.');
  return { id, query };
}

/** Writes numbers and lists as a query does; invalid values stay invalid. */
function asQuery(parameters: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const written = { ...parameters };
  const { limit, languages } = parameters;
  if (typeof limit === 'number') written['limit'] = String(limit);
  if (Array.isArray(languages) && languages.every((language) => typeof language === 'string')) {
    written['languages'] = languages.join(',');
  }
  return written;
}
