import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { CursorExpiredError, placeOf, readResultCursor, writeResultCursor } from './cursor.js';

/** Results as the database has them: what is stored, and the last one that was removed. */
class Results {
  stored: number[] = [];
  last = 0;
  expired = 0;
  private readonly kept = new Set<number>();

  append(isKept: boolean): void {
    this.last += 1;
    this.stored.push(this.last);
    if (isKept) this.kept.add(this.last);
  }

  /** Removes what is not kept of the oldest results. */
  expire(count: number): void {
    this.remove(this.stored.filter((sequence) => sequence <= count && !this.kept.has(sequence)));
  }

  /** Removes a kept one. */
  delete(place: number): void {
    this.remove([...this.kept].filter((sequence) => this.stored.includes(sequence)).slice(place, place + 1));
  }

  /** A page after a cursor, and the cursor of its end. */
  read(after: string | undefined, limit: number): { page: number[]; next: string } {
    const cursor = after === undefined ? undefined : readResultCursor(after);
    const stored = this.stored.filter((sequence) => sequence <= (cursor?.sequence ?? 0)).at(-1);
    const known = cursor?.expired ?? this.expired;
    const later = this.stored.filter((sequence) => sequence > known && sequence <= this.expired);
    const place = placeOf(cursor, {
      last: this.last,
      expired: { sequence: this.expired, mark: markOf(this.expired) },
      stored: stored === undefined ? null : { sequence: stored, mark: markOf(stored) },
      lost: Math.max(0, this.expired - known - later.length),
    });
    const page = this.stored.filter((sequence) => sequence > place.sequence).slice(0, limit);
    const end = page.at(-1);
    return {
      page,
      next: writeResultCursor(end === undefined ? place : { ...place, sequence: end, mark: markOf(end) }),
    };
  }

  private remove(removed: readonly number[]): void {
    this.stored = this.stored.filter((sequence) => !removed.includes(sequence));
    this.expired = Math.max(this.expired, ...removed);
  }
}

const markOf = (sequence: number): string | null => (sequence === 0 ? null : String(sequence).padStart(8, '0'));

const STEP = fc.oneof(
  fc.record({ type: fc.constant('append' as const), isKept: fc.boolean() }),
  fc.record({ type: fc.constant('expire' as const), count: fc.nat(30) }),
  fc.record({ type: fc.constant('delete' as const), place: fc.nat(5) }),
  fc.record({ type: fc.constant('read' as const), limit: fc.integer({ min: 1, max: 4 }) }),
);

describe('a reader of results of which some expire and others are kept', () => {
  it('gets each once, and is told of every one that it misses unless it was deleted', () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 60 }), (steps) => {
        const results = new Results();
        const read: number[] = [];
        let told = 0;
        let deletions = 0;
        let cursor: string | undefined = '0';
        const readOn = (limit: number): number => {
          try {
            const { page, next } = results.read(cursor, limit);
            read.push(...page);
            cursor = next;
            return page.length;
          } catch (error) {
            if (!(error instanceof CursorExpiredError)) throw error;
            const { oldest, expired } = error.fields as { oldest: string; expired: number };
            // What is told once is known.
            expect(oldest).not.toBe(cursor);
            told += expired;
            cursor = oldest;
            return 1;
          }
        };
        for (const step of steps) {
          if (step.type === 'append') results.append(step.isKept);
          else if (step.type === 'expire') results.expire(step.count);
          else if (step.type === 'delete') {
            const before = results.stored.length;
            results.delete(step.place);
            deletions += before - results.stored.length;
          } else readOn(step.limit);
        }
        while (readOn(3) > 0);
        expect(new Set(read).size).toBe(read.length);
        expect(read).toEqual([...read].sort((one, other) => one - other));
        expect(read.length + told).toBeLessThanOrEqual(results.last);
        expect(read.length + told).toBeGreaterThanOrEqual(results.last - deletions);
        for (const sequence of results.stored) expect(read).toContain(sequence);
      }),
    );
  });

  it('begins with the oldest that is stored without being told of others', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 20 }), fc.nat(20), (kept, count) => {
        const results = new Results();
        for (const isKept of kept) results.append(isKept);
        results.expire(count);
        const read: number[] = [];
        for (let cursor: string | undefined; ;) {
          const { page, next } = results.read(cursor, 2);
          read.push(...page);
          if (page.length === 0) break;
          cursor = next;
        }
        expect(read).toEqual(results.stored);
      }),
    );
  });
});
