const WINDOW_MS = 10_000;
const LINES_MAX = 20;

/** The number of omitted log lines by error code. */
export type NotLogged = Readonly<Record<string, number>>;

/**
 * Bounds the log lines of refused requests: 20 lines per error code in ten seconds, then the number of omitted ones. The
 * metrics count all of them.
 */
export class RefusalSampler {
  private readonly counts = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;

  /** @param report called at the end of each ten seconds in which lines were omitted */
  constructor(private readonly report: (counts: NotLogged) => void) {}

  /** Whether to log a refusal. @param code from a bounded set of codes */
  allows(code: string): boolean {
    const count = (this.counts.get(code) ?? 0) + 1;
    this.counts.set(code, count);
    this.timer ??= setTimeout(() => this.flush(), WINDOW_MS).unref();
    return count <= LINES_MAX;
  }

  /** Reports the omitted lines and starts a new interval. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const omitted = [...this.counts].flatMap(([code, count]) => (count > LINES_MAX ? [[code, count - LINES_MAX]] : []));
    this.counts.clear();
    if (omitted.length > 0) this.report(Object.fromEntries(omitted) as NotLogged);
  }
}
