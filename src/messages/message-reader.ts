import type { Type } from '@nestjs/common';
import { invalidField } from '../domain/errors.js';
import { StrictValidationPipe } from '../http/routes/validation.js';
import { VideosBodyDto } from '../videos/dto/videos-request.dto.js';

/** Identifies the caller; read before the parameters. */
const CALLER_FIELDS = new Set(['apiKey', 'requestId']);

const pipe = new StrictValidationPipe();

/** The fields of a message; none when it is no JSON object. */
export function fieldsOf(message: unknown): Readonly<Record<string, unknown>> {
  return typeof message === 'object' && message !== null && !Array.isArray(message) ? { ...message } : {};
}

/**
 * Reads the parameters of a message about one channel, playlist, video or subscription, by the rules of the HTTP query. As JSON has both,
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
  if (typeof id !== 'string') {
    throw invalidField('id', `id must be a string: ${idDescription}.`);
  }
  return { id, query: await validated(asQuery(parameters), 'query', type) };
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

const NUMBERS = ['limit', 'chunkSeconds', 'after'];
const LISTS = ['languages', 'include', 'kinds'];

/** Writes numbers and lists as a query does; invalid values stay invalid. */
function asQuery(parameters: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const written = { ...parameters };
  for (const [name, value] of Object.entries(parameters)) {
    if (typeof value === 'number' && NUMBERS.includes(name)) written[name] = String(value);
    const isList = LISTS.includes(name) && Array.isArray(value);
    if (isList && value.every((text) => typeof text === 'string')) written[name] = value.join(',');
  }
  return written;
}
