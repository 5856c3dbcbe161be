/**
 * An answer of the platform is not what it should be. The only error that the readers of this folder throw, for any
 * input; its message says what was expected and is for the log, never for a caller.
 */
export class UnreadableError extends Error {
  constructor(readonly expected: string) {
    super(`Unreadable answer: expected ${expected}.`);
    this.name = 'UnreadableError';
  }
}
