/**
 * Writes lines that a caller can cause by the thousand: of each kind the first at once, and for those of the next `pauseMs` one
 * more, the last of them with their count as `repeated`.
 */
export class RepeatedLines {
  private readonly recent = new Map<string, { last: object; repeated: number }>();

  constructor(
    private readonly log: (line: object) => void,
    private readonly pauseMs = 1_000,
  ) {}

  /** @param kind one of few, never text from a caller */
  write(kind: string, line: object): void {
    const recent = this.recent.get(kind);
    if (recent) {
      recent.last = line;
      recent.repeated += 1;
      return;
    }
    const begun = { last: line, repeated: 0 };
    this.recent.set(kind, begun);
    this.log(line);
    setTimeout(() => this.end(kind, begun), this.pauseMs).unref();
  }

  private end(kind: string, { last, repeated }: { last: object; repeated: number }): void {
    this.recent.delete(kind);
    if (repeated > 0) this.log({ ...last, repeated });
  }
}
