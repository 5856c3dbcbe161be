import { describe, expect, it } from '@jest/globals';
import { unlistedVideo } from '../../../domain/transcript.js';
import {
  isComplete,
  NOTHING_LISTED,
  readContinuation,
  type ShortsBeside,
  withPage,
  writeContinuation,
} from './list-progress.js';

const page = (count: number, stated: number | null = null) => ({
  uploads: Array.from({ length: count }, (_, index) => unlistedVideo(String(index).padStart(11, '0'))),
  stated,
  unread: 'nothing' as const,
});

describe('the end of a list', () => {
  it.each([
    ['the header agrees', [page(100, 150), page(50)], true],
    ['it stops at 100', [page(100, 240)], false],
    ['it stops at 200', [page(100, 890), page(100)], false],
    ['it stops at 100 of 101', [page(100, 101)], false],
    ['it has the 100 that are stated', [page(100, 100)], true],
    ['it stops in a page', [page(5, 15)], false],
    ['one of a few is hidden without a notice', [page(10, 11)], true],
    ['some of many are hidden without a notice', [page(100, 150), page(48)], true],
    ['the header states nothing', [page(100), page(100)], true],
    ['more was listed than stated', [page(12, 10)], true],
    ['it is empty', [page(0, 0)], true],
    ['something was unread and the header agrees', [{ ...page(5, 5), unread: 'entry' as const }], true],
    ['something was unread and the header states more', [{ ...page(5, 6), unread: 'entry' as const }], false],
    ['something was unread and the header states nothing', [{ ...page(5), unread: 'end' as const }, page(3)], false],
  ])('when %s', (_, pages, complete) => {
    expect(isComplete(pages.reduce(withPage, NOTHING_LISTED))).toBe(complete);
  });
});

describe('a continuation', () => {
  it.each([
    { pages: 1, listed: 100, expected: 890, unread: false },
    { pages: 4_999, listed: 0, expected: null, unread: true },
    { pages: 2, listed: 200, expected: 0, unread: true },
  ])('carries %j and the token', (progress) => {
    for (const token of ['abc', 'a:b', '4qmFsg%3D%3D', '12:3/4:x', ';a;b;c:d'])
      expect(readContinuation(writeContinuation({ progress, token }))).toEqual({ progress, token });
  });

  it('of uploads carries the Shorts that were read, and where their list goes on', () => {
    const progress = { pages: 3, listed: 300, expected: 890, unread: false };
    const carried = (shorts: Partial<ShortsBeside>) => {
      const whole = { above: [], below: [], next: null, complete: false, inStep: true, ...shorts };
      return [readContinuation(writeContinuation({ progress, token: 'a:b', shorts: whole }))?.shorts, whole];
    };
    const next = { progress: { pages: 1, listed: 100, expected: null, unread: true }, token: 'x;y:z%3D' };
    for (const shorts of [
      { above: ['aaaaaaaaaaa', 'bbbbb-_bbbb'], below: ['ccccccccccc'], next },
      { below: ['ccccccccccc'], next, inStep: false },
      { above: ['aaaaaaaaaaa'], complete: true },
    ]) {
      const [read, written] = carried(shorts);
      expect(read).toEqual(written);
    }
    // A list that ended early tells nothing of the following uploads.
    expect(carried({ below: ['ccccccccccc'] })[0]).toBeUndefined();
  });

  it('has at most 10 KB with the longest tokens', () => {
    const token = 't'.repeat(1_000);
    const id = (_: unknown, index: number) => String(index).padStart(11, '0');
    const [above, below] = [100, 400].map((length) => Array.from({ length }, id));
    const next = { progress: NOTHING_LISTED, token };
    const shorts = { above: above ?? [], below: below ?? [], next, complete: false, inStep: true };
    expect(writeContinuation({ progress: NOTHING_LISTED, token, shorts }).length).toBeLessThan(10_000);
  });

  it.each(['', 'abc', '3:', '3:abc:d', ':abc', 'x:abc', '2;:0/:abc', '2;;;%:abc'])('is not %j', (text) => {
    expect(readContinuation(text)).toBeNull();
  });
});
