import { describe, expect, it, jest } from '@jest/globals';
import { type KeyedLimits, KeyedLimiter } from './organization-limiter.js';

const limits = (concurrencyMax: number): KeyedLimits => ({
  concurrencyMax,
  concurrencyMaxWhenSlow: concurrencyMax,
  slowMs: 0,
});
const NEVER = new AbortController().signal;

/** Tasks that run until the test ends them; records the order of their start. */
class Tasks {
  readonly started: string[] = [];
  private readonly ends = new Map<string, () => void>();

  constructor(private readonly limiter: KeyedLimiter) {}

  start(key: string, name: string, signal = NEVER): Promise<string> {
    return this.limiter.run(key, signal, () => {
      this.started.push(name);
      return new Promise((resolve) => this.ends.set(name, () => resolve(name)));
    });
  }

  async end(name: string): Promise<void> {
    this.ends.get(name)?.();
    await new Promise(setImmediate);
  }
}

describe('KeyedLimiter', () => {
  it('runs tasks of a key up to the limit, and the others in order of arrival', async () => {
    const limiter = new KeyedLimiter(limits(2));
    const tasks = new Tasks(limiter);
    const all = ['a', 'b', 'c', 'd'].map((name) => tasks.start('one', name));
    expect(tasks.started).toEqual(['a', 'b']);
    await tasks.end('b');
    expect(tasks.started).toEqual(['a', 'b', 'c']);
    await tasks.end('a');
    expect(tasks.started).toEqual(['a', 'b', 'c', 'd']);
    await tasks.end('c');
    await tasks.end('d');
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
    expect(limiter.size).toBe(0);
  });

  it('does not delay tasks of other keys', () => {
    const tasks = new Tasks(new KeyedLimiter(limits(1)));
    void tasks.start('one', 'a');
    void tasks.start('one', 'b');
    void tasks.start('other', 'c');
    expect(tasks.started).toEqual(['a', 'c']);
  });

  it('skips tasks whose wait was aborted', async () => {
    const limiter = new KeyedLimiter(limits(1));
    const tasks = new Tasks(limiter);
    const first = tasks.start('one', 'a');
    const aborted = new AbortController();
    const refused = tasks.start('one', 'b', aborted.signal);
    const last = tasks.start('one', 'c');
    aborted.abort(new Error('too long'));
    await expect(refused).rejects.toThrow('too long');
    await expect(tasks.start('one', 'd', aborted.signal)).rejects.toThrow('too long');
    await tasks.end('a');
    expect(tasks.started).toEqual(['a', 'c']);
    await tasks.end('c');
    await Promise.all([first, last]);
    expect(limiter.size).toBe(0);
  });

  it('frees the slot of a task that fails', async () => {
    const limiter = new KeyedLimiter(limits(1));
    await expect(limiter.run('one', NEVER, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(limiter.size).toBe(0);
  });

  it('lowers the limit of a key while its tasks are slow, until one is fast again', async () => {
    const now = jest.spyOn(performance, 'now').mockReturnValue(0);
    try {
      const tasks = new Tasks(new KeyedLimiter({ concurrencyMax: 3, concurrencyMaxWhenSlow: 1, slowMs: 100 }));
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) void tasks.start('one', name);
      expect(tasks.started).toEqual(['a', 'b', 'c']);
      now.mockReturnValue(101);
      await tasks.end('a');
      await tasks.end('b');
      expect(tasks.started).toEqual(['a', 'b', 'c']);
      await tasks.end('c');
      expect(tasks.started).toEqual(['a', 'b', 'c', 'd']);
      await tasks.end('d');
      expect(tasks.started).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    } finally {
      now.mockRestore();
    }
  });
});
