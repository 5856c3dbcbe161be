const BAR_CHARACTERS_MAX = 30;
const BAR_CHARACTERS_MIN = 5;
const REDRAW_MS = 100;
/** Between two lines where the output is not a terminal. */
const LINE_INTERVAL_MS = 15_000;
/** Before this the time that remains is a guess. */
const ESTIMATE_AFTER_MS = 5_000;
const COLUMNS_DEFAULT = 80;
const CLEAR_LINE = '\r\u001b[K';

/** The state of an archive that is being fetched. */
interface ArchiveProgress {
  /** Videos that have a file or an error. */
  done: number;
  total: number;
  failed: number;
  /** Those of them that were decided since the command was started. */
  doneByThisRun: number;
}

/** The part of standard error that the progress uses. */
interface Output {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

/** Reports the progress: in one line that is redrawn on a terminal, in a line now and then otherwise. */
export class ProgressReport {
  private readonly startedAtMs: number;
  private reportedAtMs = Number.NEGATIVE_INFINITY;
  private drawn = false;

  constructor(
    private readonly output: Output,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.startedAtMs = now();
  }

  listing(uploads: number): void {
    this.report(() => `Listing uploads: ${grouped(uploads)}`);
  }

  fetching(progress: ArchiveProgress): void {
    this.report(() => {
      const columns = this.output.isTTY === true ? (this.output.columns ?? COLUMNS_DEFAULT) : undefined;
      return progressLine(progress, this.now() - this.startedAtMs, columns);
    });
  }

  /** Reports that nothing is fetched for some seconds. */
  waiting(seconds: number, blocked: boolean): void {
    const reason = blocked
      ? 'YouTube blocks the requests from this address'
      : 'YouTube does not serve this address well';
    this.report(() => `${reason}: the next attempt is in ${seconds} s`);
  }

  /** Removes the line from a terminal, so that the result follows. */
  end(): void {
    if (this.drawn) this.output.write(CLEAR_LINE);
    this.drawn = false;
  }

  private report(line: () => string): void {
    const isTerminal = this.output.isTTY === true;
    const nowMs = this.now();
    if (nowMs - this.reportedAtMs < (isTerminal ? REDRAW_MS : LINE_INTERVAL_MS)) return;
    this.reportedAtMs = nowMs;
    this.drawn = isTerminal;
    this.output.write(isTerminal ? `${CLEAR_LINE}${line()}` : `${line()}\n`);
  }
}

/** @param columns the width of the terminal, which the line does not exceed; undefined for a line without a bar */
export function progressLine(progress: ArchiveProgress, elapsedMs: number, columns: number | undefined): string {
  const { done, total, failed, doneByThisRun } = progress;
  const facts = [`${grouped(done)} of ${grouped(total)} videos`];
  if (failed > 0) facts.push(`${grouped(failed)} without`);
  if (elapsedMs >= ESTIMATE_AFTER_MS && doneByThisRun > 0) {
    facts.push(`${grouped(Math.round((doneByThisRun / elapsedMs) * 60_000))}/min`);
    if (done < total) facts.push(`${duration(((total - done) * elapsedMs) / doneByThisRun)} left`);
  }
  const text = facts.join(' · ');
  if (columns === undefined) return text;
  // One column stays free: some terminals wrap a line that fills the last one.
  const room = Math.min(BAR_CHARACTERS_MAX, columns - 1 - text.length - '[] '.length);
  if (room < BAR_CHARACTERS_MIN) return text.slice(0, Math.max(0, columns - 1));
  const full = total === 0 ? room : Math.floor((done / total) * room);
  return `[${'#'.repeat(full)}${'-'.repeat(room - full)}] ${text}`;
}

function duration(ms: number): string {
  const minutes = Math.ceil(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
