import type { DataSource } from 'typeorm';

/**
 * How long a caller who can still be refused waits for the database, for a connection and the answer together, in
 * milliseconds. Whoever waits longer is better told within two seconds that it is away: a server that stands still
 * accepts connections and statements all the same.
 */
const PROMPT_MS = 1_750;

/** The database did not answer while it was worth waiting; the statement may still be carried out. */
export class DatabaseSlowError extends Error {
  constructor() {
    super(`The database did not answer within ${PROMPT_MS} ms.`);
    this.name = 'DatabaseSlowError';
  }
}

/**
 * Runs a statement that a call which can still be refused waits for.
 *
 * @param late told what came after all when nobody waited any more
 * @throws DatabaseSlowError when it takes too long, and the driver's errors when the database is away
 */
export async function promptQuery<Rows>(
  database: Pick<DataSource, 'query'>,
  statement: string,
  values: readonly unknown[],
  late: (rows: Rows) => void = () => undefined,
): Promise<Rows> {
  let waiting = true;
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      waiting = false;
      reject(new DatabaseSlowError());
    }, PROMPT_MS);
  });
  const answer = database.query<Rows>(statement, [...values]).then((rows) => {
    if (!waiting) late(rows);
    return rows;
  });
  return Promise.race([answer, tooLate]).finally(() => clearTimeout(timer));
}
