import { withTimeout } from '../domain/with-timeout.js';

/** The longest wait for the query that runs: one that hangs delays the next by no more. */
const WAIT_MS = 10;

interface Batch<Row> {
  readonly ids: Set<string>;
  readonly rows: Promise<ReadonlyMap<string, Row>>;
}

/**
 * Reads rows by their IDs. Reads that are requested while a query runs share the next one, so that the cost of a read falls
 * under load. No read joins a query that has started before, so each sees all that was committed when it was requested.
 */
export class SharedReads<Row> {
  private next: Batch<Row> | undefined;
  private running: Promise<unknown> | undefined;

  /** @param readAll runs one query for the rows with these IDs */
  constructor(private readonly readAll: (ids: string[]) => Promise<ReadonlyMap<string, Row>>) {}

  /**
   * @returns undefined when there is no such row
   * @throws any error of the query
   */
  async read(id: string): Promise<Row | undefined> {
    this.next ??= this.nextBatch();
    const { ids, rows } = this.next;
    ids.add(id);
    return (await rows).get(id);
  }

  private nextBatch(): Batch<Row> {
    const ids = new Set<string>();
    return { ids, rows: this.turn().then(() => this.start(ids)) };
  }

  private async turn(): Promise<void> {
    if (this.running) await withTimeout(this.running, WAIT_MS);
  }

  private start(ids: Set<string>): Promise<ReadonlyMap<string, Row>> {
    this.next = undefined;
    const rows = this.readAll([...ids]);
    const ended = rows
      .catch(() => undefined)
      .finally(() => {
        if (this.running === ended) this.running = undefined;
      });
    this.running = ended;
    return rows;
  }
}
