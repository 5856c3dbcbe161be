import type { Type } from '@nestjs/common';
import type { ConsumerDeserializer, IncomingEvent, IncomingRequest } from '@nestjs/microservices';
import { InvalidRequestError } from '../domain/errors.js';
import { StrictValidationPipe } from '../http/validation.js';
import { VideosBodyDto } from '../videos/dto/videos-request.dto.js';

/** Every event of a response repeats the ID. */
const ID_CHARACTERS_MAX = 128;
/** Nest parses a pattern as JSON and traverses the result. */
const PATTERN_CHARACTERS_MAX = 128;

/** The envelope of a message in Nest's transports. */
interface MessagePacket {
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

/** Identifies the caller; read before the parameters. */
const CALLER_FIELDS = new Set(['apiKey', 'requestId']);

const pipe = new StrictValidationPipe();

/** The fields of a message; none when it is no JSON object. */
export function fieldsOf(message: unknown): Readonly<Record<string, unknown>> {
  return typeof message === 'object' && message !== null && !Array.isArray(message) ? { ...message } : {};
}

/**
 * Reads the parameters of a message about one channel, playlist or video, by the rules of the HTTP query. As JSON has both,
 * `limit` may be a number and `languages` a list.
 *
 * @param type the class of the query
 * @param idDescription what `id` must be
 * @throws InvalidRequestError naming every field that is wrong or unknown
 */
export async function readIdMessage<Query extends object>(
  message: unknown,
  type: Type<Query>,
  idDescription: string,
): Promise<{ id: string; query: Query }> {
  const { id, ...parameters } = parametersOf(message);
  const idMissing = { field: 'id', message: `id must be a string: ${idDescription}.` };
  const query = await validated(asQuery(parameters), 'query', type).catch((error: unknown) => {
    if (typeof id === 'string' || !(error instanceof InvalidRequestError)) throw error;
    throw new InvalidRequestError([idMissing, ...error.details]);
  });
  if (typeof id !== 'string') throw new InvalidRequestError([idMissing]);
  return { id, query };
}

/** Reads the parameters of a message about a list of videos. @throws InvalidRequestError */
export function readVideosMessage(message: unknown): Promise<VideosBodyDto> {
  return validated(parametersOf(message), 'body', VideosBodyDto);
}

function parametersOf(message: unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fieldsOf(message)).filter(([name]) => !CALLER_FIELDS.has(name)));
}

async function validated<T extends object>(value: unknown, kind: 'query' | 'body', type: Type<T>): Promise<T> {
  const valid: unknown = await pipe.transform(value, { type: kind, metatype: type });
  if (!(valid instanceof type)) throw new Error('The validation pipe returned another type.');
  return valid;
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
