import { describe, expect, it } from '@jest/globals';
import { progressLine, ProgressReport } from './progress.js';

const PROGRESS = { done: 1_500, total: 2_000, failed: 12, doneByThisRun: 500 };

describe('the line of the progress', () => {
  it('has counts, the rate and the time that remains', () => {
    expect(progressLine(PROGRESS, 600_000, undefined)).toBe(
      '1,500 of 2,000 videos · 12 without · 50/min · 10 min left',
    );
    expect(progressLine({ ...PROGRESS, done: 150, total: 20_000 }, 600_000, undefined)).toMatch(/ · 6 h 37 min left$/);
  });

  it('has no estimate in the first seconds and at the end', () => {
    expect(progressLine(PROGRESS, 4_000, undefined)).toBe('1,500 of 2,000 videos · 12 without');
    expect(progressLine({ done: 5, total: 5, failed: 0, doneByThisRun: 5 }, 60_000, undefined)).toBe(
      '5 of 5 videos · 5/min',
    );
  });

  it('never exceeds the width of a terminal', () => {
    expect(progressLine(PROGRESS, 600_000, 120)).toMatch(/^\[#{22}-{8}\] 1,500 of 2,000 videos · /);
    expect(progressLine({ done: 0, total: 0, failed: 0, doneByThisRun: 0 }, 0, 60)).toMatch(/^\[#+\] 0 of 0 videos$/);
    for (let columns = 0; columns < 140; columns++)
      expect(progressLine(PROGRESS, 600_000, columns).length).toBeLessThanOrEqual(Math.max(0, columns - 1));
  });
});

describe('the report of the progress', () => {
  /** Reports every 50 ms for half a minute. */
  function reported(isTTY: boolean): string[] {
    const written: string[] = [];
    let nowMs = 0;
    const report = new ProgressReport({ isTTY, columns: 80, write: (text) => written.push(text) }, () => nowMs);
    for (; nowMs <= 30_000; nowMs += 50) report.fetching(PROGRESS);
    report.end();
    return written;
  }

  it('redraws one line of a terminal ten times a second at most, and removes it at the end', () => {
    const written = reported(true);
    expect(written).toHaveLength(302);
    for (const text of written) expect([text.startsWith('\r\u001b[K'), text.includes('\n')]).toEqual([true, false]);
    expect(written.at(-1)).toBe('\r\u001b[K');
  });

  it('is a line now and then where the output is not a terminal', () => {
    const written = reported(false);
    expect(written).toHaveLength(3);
    for (const text of written) expect(text).toMatch(/^1,500 of 2,000 videos[\w ·,/]*\n$/);
  });
});
