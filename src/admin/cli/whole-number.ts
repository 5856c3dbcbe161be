import { InvalidArgumentError } from 'commander';
import { parseWholeNumber } from '../../config/variables.js';

/** @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  const number = parseWholeNumber(text);
  if (number === undefined) throw new InvalidArgumentError('It must be a whole number.');
  return number;
}
