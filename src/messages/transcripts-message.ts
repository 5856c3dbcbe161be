import { TranscriptsQueryDto } from '../channels/dto/transcripts-query.dto.js';
import { InvalidRequestError, type InvalidField } from '../domain/errors.js';
import { StrictValidationPipe } from '../http/validation.js';

/** What a message asks for, beside who asks. */
export interface TranscriptsMessage {
  id: string;
  query: TranscriptsQueryDto;
}

const ID_MISSING: InvalidField = {
  field: 'id',
  message: 'id must be given as text: the handle, the ID or the URL of a channel.',
};

/** Who asks, which is read before the rest. */
const CALLER_FIELDS = new Set(['apiKey', 'requestId']);

const pipe = new StrictValidationPipe();

/** The fields of a message; none when it is no JSON object. */
export function fieldsOf(message: unknown): Readonly<Record<string, unknown>> {
  return typeof message === 'object' && message !== null && !Array.isArray(message) ? { ...message } : {};
}

/**
 * Reads what a message asks for, by the same rules as the query of the HTTP operation. A number may stand for `limit`
 * and a list for `languages`, as JSON has both.
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
  if (!(query instanceof TranscriptsQueryDto)) throw new Error('The parameters of a message were not read.');
  return { id, query };
}

/** Numbers and lists are written as they would stand in a query; what is wrong stays so. */
function asQuery(parameters: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const written = { ...parameters };
  const { limit, languages } = parameters;
  if (typeof limit === 'number') written['limit'] = String(limit);
  if (Array.isArray(languages) && languages.every((language) => typeof language === 'string')) {
    written['languages'] = languages.join(',');
  }
  return written;
}
