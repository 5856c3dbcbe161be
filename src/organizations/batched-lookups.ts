/** How many hashes one query looks for at the most. */
const BATCH_MAX = 1_000;

interface Waiter<Found> {
  hash: Buffer;
  found: Promise<Found | undefined>;
  resolve: (found: Found | undefined) => void;
  reject: (error: unknown) => void;
}

/** Finds rows by their hashes, by one query; the result is keyed by the hash in hexadecimal digits. */
export type FindByHashes<Found> = (hashes: readonly Buffer[]) => Promise<ReadonlyMap<string, Found>>;

/**
 * Looks up hashes together: one query at a time, and one in an interval, however many lookups arrive. A lookup alone is
 * made at once. No result is stored: a lookup never joins a query that has already begun.
 */
export class BatchedLookups<Found> {
  private readonly waiting = new Map<string, Waiter<Found>>();
  private busy = false;
  private startedAtMs = -Infinity;

  constructor(
    private readonly findAll: FindByHashes<Found>,
    private readonly intervalMs: number,
  ) {}

  /** @throws what the query throws */
  find(hash: Buffer): Promise<Found | undefined> {
    const id = hash.toString('hex');
    const known = this.waiting.get(id);
    if (known) return known.found;
    let [resolve, reject]: [Waiter<Found>['resolve'], Waiter<Found>['reject']] = [() => undefined, () => undefined];
    const found = new Promise<Found | undefined>((...settle) => ([resolve, reject] = settle));
    this.waiting.set(id, { hash, found, resolve, reject });
    this.schedule();
    return found;
  }

  private schedule(): void {
    if (this.busy || this.waiting.size === 0) return;
    this.busy = true;
    const waitMs = Math.min(this.intervalMs, this.startedAtMs + this.intervalMs - performance.now());
    if (waitMs > 0) setTimeout(() => void this.run(), waitMs);
    else void this.run();
  }

  private async run(): Promise<void> {
    this.startedAtMs = performance.now();
    const batch = [...this.waiting].slice(0, BATCH_MAX);
    for (const [id] of batch) this.waiting.delete(id);
    try {
      const found = await this.findAll(batch.map(([, { hash }]) => hash));
      for (const [id, { resolve }] of batch) resolve(found.get(id));
    } catch (error) {
      // Those that arrived meanwhile have waited for this query already; another one would double their wait.
      for (const { reject } of [...batch.map(([, waiter]) => waiter), ...this.waiting.values()]) reject(error);
      this.waiting.clear();
    } finally {
      this.busy = false;
      this.schedule();
    }
  }
}
