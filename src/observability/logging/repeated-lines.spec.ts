import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RepeatedLines } from './logger.js';

describe('a line that is repeated', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('is written once and then counted, each second and for each kind', () => {
    const written: object[] = [];
    const lines = new RepeatedLines((line) => void written.push(line));
    for (let id = 0; id < 60_000; id += 1) lines.write('refused', { id });
    lines.write('lost', { id: 'other' });
    expect(written).toEqual([{ id: 0 }, { id: 'other' }]);
    jest.advanceTimersByTime(1_000);
    expect(written.slice(2)).toEqual([{ id: 59_999, repeated: 59_999 }]);
    lines.write('refused', { id: 'later' });
    jest.advanceTimersByTime(1_000);
    expect(written.slice(3)).toEqual([{ id: 'later' }]);
  });
});
