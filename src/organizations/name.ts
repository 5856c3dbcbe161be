import { redactApiKeys } from './api-key.js';
import { InvalidNameError, NAME_LENGTH_MAX } from './organization-errors.js';

/** Control characters, halves of a surrogate pair, and what breaks a line. */
const REFUSED = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * The name of an organization or a key, trimmed.
 *
 * @throws InvalidNameError unless it has 1 to 100 characters, none of them a control character, and holds no API key
 */
export function readName(text: string): string {
  const name = text.trim();
  const length = Array.from(name).length;
  if (length < 1 || length > NAME_LENGTH_MAX || REFUSED.test(name)) throw new InvalidNameError();
  // Names are stored and shown, and keys are not.
  if (redactApiKeys(name) !== name) throw new InvalidNameError('A name must not hold an API key.');
  return name;
}
