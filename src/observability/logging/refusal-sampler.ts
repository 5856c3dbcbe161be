const WINDOW_MS = 10_000;
const LINES_MAX = 20;

/** How many lines were left out of a log, by the error code that they would have had. */
export type NotLogged = Readonly<Record<string, number>>;

/**
 * Bounds what refused requests write to the log: 20 lines of each error code in ten seconds, and then how many more there
 * were. The metrics count all of them.
 */
export class RefusalSampler {
  private readonly counts = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;

  /** @param report called at the end of each ten seconds in which lines were left out */
  constructor(private readonly report: (counts: NotLogged) => void) {}

  /** Whether a refusal with this code, which must be one of a bounded number, is to be logged. */
  allows(code: string): boolean {
    const count = (this.counts.get(code) ?? 0) + 1;
    this.counts.set(code, count);
    this.timer ??= setTimeout(() => this.flush(), WINDOW_MS).unref();
    return count <= LINES_MAX;
  }

  /** Reports what was left out so far, and begins anew. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const dropped = [...this.counts].flatMap(([code, count]) => (count > LINES_MAX ? [[code, count - LINES_MAX]] : []));
    this.counts.clear();
    if (dropped.length > 0) this.report(Object.fromEntries(dropped) as NotLogged);
  }
}
