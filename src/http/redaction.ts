import { redactApiKeys } from '../organizations/api-key.js';

/** Takes the secrets out of a text that goes into an answer or a log. */
export type Redactor = (text: string) => string;

/**
 * Hides API keys, and the tokens of this service: a caller may send one by mistake where none belongs.
 *
 * @param tokens those that are set
 */
export function createRedactor(...tokens: (string | undefined)[]): Redactor {
  const hidden = tokens.flatMap((token) =>
    // In JSON a quote or a backslash is written as two characters.
    token === undefined ? [] : [token, JSON.stringify(token).slice(1, -1)],
  );
  return (text) => hidden.reduce((rest, token) => rest.replaceAll(token, '…'), redactApiKeys(text));
}
