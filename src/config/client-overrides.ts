import { z } from 'zod';
import { parseJson } from '../domain/parse-json.js';

const TEXT = 'must be a text of 1 to 300 printable ASCII characters';
/** The values are sent as headers. */
const text = z.string(TEXT).regex(/^[\x20-\x7e]{1,300}$/, TEXT);

const POSITIVE = 'must be a positive whole number';

/** What an override can set: fields of `context.client`, of which `userAgent` and `clientVersion` are headers too. */
const fields = {
  clientVersion: text.exactOptional(),
  userAgent: text.exactOptional(),
  osName: text.exactOptional(),
  osVersion: text.exactOptional(),
  deviceMake: text.exactOptional(),
  deviceModel: text.exactOptional(),
  androidSdkVersion: z.int(POSITIVE).positive(POSITIVE).exactOptional(),
};

const clientFields = z.strictObject(fields, `must be a JSON object of the fields ${Object.keys(fields).join(', ')}`);

export type ClientFields = z.output<typeof clientFields>;

/** Overrides of `clients` as JSON, such as `{ "VISIONOS": { "clientVersion": "1.04" } }`. */
export function clientOverrides<Client extends string>(clients: readonly Client[]) {
  const error = `must be a JSON object of the clients ${clients.join(', ')}`;
  return z
    .string()
    .transform(parseJson)
    .pipe(z.partialRecord(z.enum(clients), clientFields, error));
}
