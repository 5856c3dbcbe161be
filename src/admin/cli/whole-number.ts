import { InvalidArgumentError } from 'commander';

/**
 * Reads a whole number in decimal digits; `Number` would take "1e3", " 5" and "0x10" too.
 *
 * @throws InvalidArgumentError
 */
export function wholeNumber(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}
