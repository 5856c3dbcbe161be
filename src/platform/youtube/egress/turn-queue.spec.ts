import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Requester } from '../../video-platform.js';
import { TurnQueue } from './turn-queue.js';

/** A call of an organization. */
const call = (organizationId: string): Requester => ({ organizationId, fairnessKey: {} });

/** A queue of items that are added for these callers, in this order. */
function queueOf(...added: readonly (readonly [item: string, requester: Requester])[]) {
  const queue = new TurnQueue<string>();
  for (const [item, requester] of added) queue.add(item, requester);
  return queue;
}

function takeAll<T>(queue: TurnQueue<T>): T[] {
  const taken: T[] = [];
  for (let item = queue.take(); item !== undefined; item = queue.take()) taken.push(item);
  return taken;
}

/** What the queue promises, with lists: the first organization, its first call and that call's first item have the turn. */
class Model {
  private readonly organizations: { id: string; calls: { key: object; items: number[] }[] }[] = [];

  add(item: number, { organizationId, fairnessKey }: Requester): void {
    let organization = this.organizations.find(({ id }) => id === organizationId);
    if (!organization) this.organizations.push((organization = { id: organizationId, calls: [] }));
    let known = organization.calls.find(({ key }) => key === fairnessKey);
    if (!known) organization.calls.push((known = { key: fairnessKey, items: [] }));
    known.items.push(item);
  }

  take(): number | undefined {
    const organization = this.organizations.shift();
    const known = organization?.calls.shift();
    const item = known?.items.shift();
    if (known && known.items.length > 0) organization?.calls.push(known);
    if (organization && organization.calls.length > 0) this.organizations.push(organization);
    return item;
  }

  remove(item: number): void {
    for (const organization of [...this.organizations])
      for (const known of [...organization.calls]) {
        if (known.items.includes(item)) known.items.splice(known.items.indexOf(item), 1);
        if (known.items.length === 0) organization.calls.splice(organization.calls.indexOf(known), 1);
        if (organization.calls.length === 0) this.organizations.splice(this.organizations.indexOf(organization), 1);
      }
  }
}

describe('TurnQueue', () => {
  it('alternates between organizations, however many calls one of them makes', () => {
    const [first, second, other] = [call('busy'), call('busy'), call('small')];
    const queue = queueOf(['1a', first], ['1b', first], ['2a', second], ['2b', second], ['s1', other], ['s2', other]);
    expect(takeAll(queue)).toEqual(['1a', 's1', '2a', 's2', '1b', '2b']);
  });

  it('alternates between the calls of an organization, and keeps the order of a call', () => {
    const [large, small] = [call('one'), call('one')];
    const queue = queueOf(['l1', large], ['l2', large], ['l3', large], ['s1', small], ['s2', small]);
    expect([...queue.inTurn()]).toEqual(['l1', 's1', 'l2', 's2', 'l3']);
    expect(queue.size).toBe(5);
    expect(takeAll(queue)).toEqual(['l1', 's1', 'l2', 's2', 'l3']);
  });

  it('lets an organization that arrives late wait for one item of each other', () => {
    const queue = queueOf(...Array.from({ length: 300 }, (_, index) => [`${index}`, call(`of ${index % 3}`)] as const));
    const late = call('late');
    expect(queue.ahead(late)).toBe(3);
    queue.add('late', late);
    expect([...queue.inTurn()].indexOf('late')).toBe(3);
  });

  it('ignores the removal of an item that it does not hold', () => {
    const [one, other] = [call('one'), call('one')];
    const queue = queueOf(['a', one]);
    queue.remove('a', other);
    queue.remove('b', one);
    queue.remove('a', call('other'));
    expect([queue.size, queue.take(), queue.take()]).toEqual([1, 'a', undefined]);
    queue.remove('a', one);
    expect(queue.size).toBe(0);
  });

  it('takes what a simple model takes, never lets more go ahead than it says, and ends empty', () => {
    const step = fc.record({
      do: fc.constantFrom('add', 'add', 'add', 'take', 'remove'),
      which: fc.nat(99),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const queue = new TurnQueue<number>();
        const model = new Model();
        // Three organizations with one, two and three calls.
        const requesters = ['a', 'b', 'b', 'c', 'c', 'c'].map(call);
        const held = new Map<number, Requester>();
        for (const [item, { do: what, which }] of steps.entries()) {
          const requester = requesters[which % requesters.length] ?? call('a');
          if (what === 'add') {
            const ahead = queue.ahead(requester);
            queue.add(item, requester);
            model.add(item, requester);
            held.set(item, requester);
            expect([...queue.inTurn()].indexOf(item)).toBeLessThanOrEqual(ahead);
          } else if (what === 'take') {
            const taken = queue.take();
            expect(taken).toBe(model.take());
            if (taken !== undefined) held.delete(taken);
          } else {
            const [removed, of] = [...held][which % Math.max(1, held.size)] ?? [];
            if (removed === undefined || !of) continue;
            queue.remove(removed, of);
            model.remove(removed);
            held.delete(removed);
          }
          expect(queue.size).toBe(held.size);
        }
        for (let left = held.size; left > 0; left -= 1) expect(queue.take()).toBe(model.take());
        expect([queue.take(), queue.size, queue.ahead(call('a'))]).toEqual([undefined, 0, 0]);
      }),
    );
  });
});
