/** The database did not answer while it was worth waiting; a statement that was sent may still be carried out. */
export class DatabaseSlowError extends Error {
  constructor(waitedMs: number) {
    super(`The database did not answer within ${waitedMs} ms.`);
    this.name = 'DatabaseSlowError';
  }
}

/** Nothing was sent: those before it wait for the lock of the same organization, and its turn did not come in time. */
export class DatabaseBusyError extends Error {
  constructor() {
    super('The lock of the organization is held for too long; other statements wait for it already.');
    this.name = 'DatabaseBusyError';
  }
}
