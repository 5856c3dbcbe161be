import type { Type } from '@nestjs/common';
import { invalidField } from '../domain/errors.js';
import { readInput } from '../http/routes/validation.js';

/** Identifies the caller; read before the parameters. */
const CALLER_FIELDS = new Set(['apiKey', 'requestId']);

/** The fields of a message; none when it is no JSON object. */
export function fieldsOf(message: unknown): Readonly<Record<string, unknown>> {
  return typeof message === 'object' && message !== null && !Array.isArray(message) ? { ...message } : {};
}

/**
 * Reads the parameters of a message about one channel, playlist, video or subscription, which are those of the HTTP query. A value may be
 * written as there or as JSON.
 *
 * @param type the class of the query
 * @param idDescription what `id` must be
 * @throws InvalidRequestError naming every field that is wrong or unknown
 */
export function readIdMessage<Query extends object>(
  message: unknown,
  type: Type<Query>,
  idDescription: string,
): { id: string; query: Query } {
  const { id, ...parameters } = parametersOf(message);
  if (typeof id !== 'string') {
    throw invalidField('id', `id must be a string: ${idDescription}.`);
  }
  return { id, query: readInput(type, parameters, 'either') };
}

/** Reads the parameters of a message that is about nothing that has an ID. @throws InvalidRequestError */
export function readMessage<Parameters extends object>(
  message: unknown,
  type: Type<Parameters>,
  form: 'json' | 'either',
): Parameters {
  return readInput(type, parametersOf(message), form);
}

function parametersOf(message: unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fieldsOf(message)).filter(([name]) => !CALLER_FIELDS.has(name)));
}
