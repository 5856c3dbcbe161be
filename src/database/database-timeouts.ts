/** How long the service waits for PostgreSQL. Tests that are about something else wait longer (`test/jest/wide-timeouts.ts`). */
export const DATABASE_TIMEOUTS = {
  /** For a connection of the pool, open or new. */
  connectMs: 2_000,
  /**
   * How long a call that can still be refused waits in total: for a connection and the result. A server that stalls still
   * accepts connections and statements, so only a deadline refuses the call within two seconds.
   */
  callMs: 1_750,
  statementMs: 5_000,
  /** Longer than the statement timeout, which leaves the connection usable. Then the connection of a silent server is closed. */
  responseMs: 5_500,
  /** Bounds how long the calls of a locked organization keep connections from others. */
  lockMs: 750,
};
