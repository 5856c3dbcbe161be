import { describe, expect, it, jest } from '@jest/globals';
import { type TurnLimits, Turns } from './organization-turns.js';

const limits = (atOnce: number): TurnLimits => ({ atOnce, atOnceWhenSlow: atOnce, slowMs: 0 });
const NEVER = new AbortController().signal;

/** Work that lasts until it is ended, and says when it has begun. */
class Work {
  readonly started: string[] = [];
  private readonly ends = new Map<string, () => void>();

  constructor(private readonly turns: Turns) {}

  start(key: string, name: string, signal = NEVER): Promise<string> {
    return this.turns.run(key, signal, () => {
      this.started.push(name);
      return new Promise((resolve) => this.ends.set(name, () => resolve(name)));
    });
  }

  async end(name: string): Promise<void> {
    this.ends.get(name)?.();
    await new Promise(setImmediate);
  }
}

describe('turns', () => {
  it('let so many of a key work at once, the others in the order in which they came', async () => {
    const turns = new Turns(limits(2));
    const work = new Work(turns);
    const all = ['a', 'b', 'c', 'd'].map((name) => work.start('one', name));
    expect(work.started).toEqual(['a', 'b']);
    await work.end('b');
    expect(work.started).toEqual(['a', 'b', 'c']);
    await work.end('a');
    expect(work.started).toEqual(['a', 'b', 'c', 'd']);
    await work.end('c');
    await work.end('d');
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
    expect(turns.size).toBe(0);
  });

  it('of other keys come at once', () => {
    const work = new Work(new Turns(limits(1)));
    void work.start('one', 'a');
    void work.start('one', 'b');
    void work.start('other', 'c');
    expect(work.started).toEqual(['a', 'c']);
  });

  it('that are not waited for any more are passed over', async () => {
    const turns = new Turns(limits(1));
    const work = new Work(turns);
    const first = work.start('one', 'a');
    const impatient = new AbortController();
    const refused = work.start('one', 'b', impatient.signal);
    const last = work.start('one', 'c');
    impatient.abort(new Error('too long'));
    await expect(refused).rejects.toThrow('too long');
    await expect(work.start('one', 'd', impatient.signal)).rejects.toThrow('too long');
    await work.end('a');
    expect(work.started).toEqual(['a', 'c']);
    await work.end('c');
    await Promise.all([first, last]);
    expect(turns.size).toBe(0);
  });

  it('end with work that fails', async () => {
    const turns = new Turns(limits(1));
    await expect(turns.run('one', NEVER, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(turns.size).toBe(0);
  });

  it('are fewer while the work of a key takes long, until some of it is quick again', async () => {
    const now = jest.spyOn(performance, 'now').mockReturnValue(0);
    try {
      const work = new Work(new Turns({ atOnce: 3, atOnceWhenSlow: 1, slowMs: 100 }));
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) void work.start('one', name);
      expect(work.started).toEqual(['a', 'b', 'c']);
      now.mockReturnValue(101);
      await work.end('a');
      await work.end('b');
      expect(work.started).toEqual(['a', 'b', 'c']);
      await work.end('c');
      expect(work.started).toEqual(['a', 'b', 'c', 'd']);
      await work.end('d');
      expect(work.started).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    } finally {
      now.mockRestore();
    }
  });
});
