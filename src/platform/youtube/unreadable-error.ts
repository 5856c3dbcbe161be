/**
 * A response of the platform does not have the expected form. The only error that the parsers throw, for any input. Its
 * message names what was expected; it is for the log, never for a caller.
 */
export class UnreadableError extends Error {
  constructor(readonly expected: string) {
    super(`Unreadable answer: expected ${expected}.`);
    this.name = 'UnreadableError';
  }
}
