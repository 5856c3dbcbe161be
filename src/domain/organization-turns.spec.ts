import { describe, expect, it } from '@jest/globals';
import { OrganizationTurns } from './waiting.js';

/** Work that ends when its signal is aborted. */
function work() {
  const begun: string[] = [];
  const ends = new Map<string, (failure?: Error) => void>();
  const start = (name: string) => (): Promise<string> => {
    begun.push(name);
    return new Promise((resolve, reject) => {
      ends.set(name, (failure) => {
        if (failure) reject(failure);
        else resolve(name);
      });
    });
  };
  return { begun, start, end: (name: string, failure?: Error) => ends.get(name)?.(failure) };
}

describe('turns of organizations', () => {
  it('run so much work of one at a time, in its order, and do not hold up others', async () => {
    const turns = new OrganizationTurns(2);
    const { begun, start, end } = work();
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => turns.run('one', start(name)));
    const other = turns.run('other', start('x'));
    expect(begun).toEqual(['a', 'b', 'x']);
    end('b');
    await expect(b).resolves.toBe('b');
    expect(begun).toEqual(['a', 'b', 'x', 'c']);
    end('a');
    await expect(a).resolves.toBe('a');
    for (const name of ['c', 'd', 'x']) end(name);
    await expect(Promise.all([c, d, other])).resolves.toEqual(['c', 'd', 'x']);
  });

  it('pass on after a failure', async () => {
    const turns = new OrganizationTurns(1);
    const { begun, start, end } = work();
    const [failed, next] = [turns.run('one', start('a')), turns.run('one', start('b'))];
    end('a', new Error('refused'));
    await expect(failed).rejects.toThrow('refused');
    expect(begun).toEqual(['a', 'b']);
    end('b');
    await expect(next).resolves.toBe('b');
  });
});
