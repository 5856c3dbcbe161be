import { describe, expect, it } from '@jest/globals';
import { unlistedVideo } from '../../../domain/transcript.js';
import { type ListProgress, NOTHING_LISTED, pageAfter, readContinuation } from './list-reader.js';

interface Read {
  count: number;
  stated?: number;
  unread?: 'nothing' | 'entry' | 'end';
}

/** The last of some pages of a list. */
function lastOf(pages: readonly Read[]) {
  return pages.reduce(
    ({ progress }, { count, stated = null, unread = 'nothing' }, index) => {
      const uploads = Array.from({ length: count }, (_, place) => unlistedVideo(String(place).padStart(11, '0')));
      const isLast = index === pages.length - 1;
      const page = pageAfter(progress, { uploads, next: isLast ? null : 'token', stated, unread });
      return { page, progress: readContinuation(page.next ?? '')?.progress ?? NOTHING_LISTED };
    },
    {
      page: pageAfter(NOTHING_LISTED, { uploads: [], next: null, stated: null, unread: 'nothing' }),
      progress: NOTHING_LISTED,
    },
  ).page;
}

describe('the end of a list', () => {
  it.each<[string, Read[], boolean, number | null]>([
    ['the header agrees', [{ count: 100, stated: 150 }, { count: 50 }], true, 0],
    ['it stops at 100', [{ count: 100, stated: 240 }], false, 140],
    ['it stops at 200', [{ count: 100, stated: 890 }, { count: 100 }], false, 690],
    ['it stops at 100 of 101', [{ count: 100, stated: 101 }], false, 1],
    ['it has the 100 that are stated', [{ count: 100, stated: 100 }], true, 0],
    ['it stops in a page', [{ count: 5, stated: 15 }], false, 10],
    ['one of a few is hidden without a notice', [{ count: 10, stated: 11 }], true, 1],
    ['some of many are hidden without a notice', [{ count: 100, stated: 150 }, { count: 48 }], true, 2],
    ['the header states nothing', [{ count: 100 }, { count: 100 }], true, 0],
    ['more was listed than stated', [{ count: 12, stated: 10 }], true, 0],
    ['it is empty', [{ count: 0, stated: 0 }], true, 0],
    ['something was unread and the header agrees', [{ count: 5, stated: 5, unread: 'entry' }], true, 0],
    ['something was unread and the header states more', [{ count: 5, stated: 6, unread: 'entry' }], false, 1],
    ['a page before ended unread and the header states nothing', [{ count: 5, unread: 'end' }, { count: 3 }], false, 0],
    ['it ends unread', [{ count: 5, stated: 9, unread: 'end' }], false, null],
  ])('when %s', (_, pages, complete, hidden) => {
    expect(lastOf(pages)).toMatchObject({ next: null, incomplete: !complete, hidden, pages: pages.length });
  });

  it('is the page 5,000, since a list that goes on repeats itself', () => {
    const next = (pages: number) =>
      pageAfter({ ...NOTHING_LISTED, pages }, { uploads: [], next: 'token', stated: null, unread: 'nothing' });
    expect(next(4_998).next).toMatch(/^5000:/);
    expect(next(4_999)).toMatchObject({ next: null, incomplete: true, hidden: null, pages: 5_000 });
  });
});

describe('a continuation', () => {
  it.each<ListProgress>([
    { pages: 1, listed: 100, expected: 890, unread: false },
    { pages: 4_998, listed: 0, expected: null, unread: true },
    { pages: 2, listed: 200, expected: 0, unread: true },
  ])('carries %j and the token', (progress) => {
    for (const token of ['abc', 'a:b', '4qmFsg%3D%3D', '12:3/4:x', ';a;b;c:d']) {
      const { next } = pageAfter(progress, { uploads: [], next: token, stated: null, unread: 'nothing' });
      expect(readContinuation(next ?? '')).toEqual({ progress: { ...progress, pages: progress.pages + 1 }, token });
    }
  });

  it.each([
    '4;aaaaaaaaaaabbbbb-_bbbb;ccccccccccc;!MjowLzp4O3k6eiUzRA:300/890:a:b',
    '4;;ccccccccccc;MjowLzp4:300/890:a:b',
    '4;aaaaaaaaaaa;;:300/890:a:b',
    '4:300/890:a:b',
  ])('of a former version (%s), which can carry Shorts, goes on', (text) => {
    const progress = { pages: 3, listed: 300, expected: 890, unread: false };
    expect(readContinuation(text)).toEqual({ progress, token: 'a:b' });
  });

  it.each(['', 'abc', '3:', '3:abc:d', ':abc', 'x:abc', '2;:0/:', '2;;;%:abc'])('is not %j', (text) => {
    expect(readContinuation(text)).toBeNull();
  });
});
