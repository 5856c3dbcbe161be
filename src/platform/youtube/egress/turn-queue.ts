import type { Requester } from '../../video-platform.js';

/**
 * Waiting items in turns: organizations alternate, so do the calls of an organization, and the items of a call keep their
 * order. A call for two videos that arrives after calls for hundreds waits for one item of each other organization. Adding,
 * taking and removing cost the same whatever waits.
 */
export class TurnQueue<T> {
  /** By organization and call. The first of each map has the next turn, and moves to the end afterwards. */
  private readonly organizations = new Map<string, { size: number; calls: Map<object, Set<T>> }>();
  private total = 0;

  get size(): number {
    return this.total;
  }

  add(item: T, { organizationId, fairnessKey }: Requester): void {
    const organization = this.organizations.get(organizationId) ?? { size: 0, calls: new Map<object, Set<T>>() };
    const items = organization.calls.get(fairnessKey) ?? new Set();
    this.organizations.set(organizationId, organization);
    organization.calls.set(fairnessKey, items.add(item));
    organization.size += 1;
    this.total += 1;
  }

  /** Removes an item under the requester that it was added with. */
  remove(item: T, { organizationId, fairnessKey }: Requester): void {
    const organization = this.organizations.get(organizationId);
    const items = organization?.calls.get(fairnessKey);
    if (!organization || !items?.delete(item)) return;
    if (items.size === 0) organization.calls.delete(fairnessKey);
    if (organization.calls.size === 0) this.organizations.delete(organizationId);
    organization.size -= 1;
    this.total -= 1;
  }

  take(): T | undefined {
    for (const [organizationId, organization] of this.organizations)
      for (const [fairnessKey, items] of organization.calls)
        for (const item of items) {
          this.remove(item, { organizationId, fairnessKey });
          toEnd(this.organizations, organizationId);
          toEnd(organization.calls, fairnessKey);
          return item;
        }
    return undefined;
  }

  sizeOf(organizationId: string): number {
    return this.organizations.get(organizationId)?.size ?? 0;
  }

  /** At most how many items are taken before one more of a requester. */
  ahead({ organizationId, fairnessKey }: Requester): number {
    const organization = this.organizations.get(organizationId);
    if (!organization) return this.aheadOf(organizationId, 0);
    const items = organization.calls.get(fairnessKey);
    const own = turnsBefore(items?.size ?? 0, organization.calls.size - (items ? 1 : 0));
    return this.aheadOf(organizationId, Math.min(organization.size, own));
  }

  /** At most how many items are taken before an organization has had some turns and has the next one. */
  aheadOf(organizationId: string, turns: number): number {
    const others = this.organizations.size - (this.organizations.has(organizationId) ? 1 : 0);
    return Math.min(this.total, turnsBefore(turns, others));
  }

  *inTurn(): Generator<T> {
    const copy = new TurnQueue<T>();
    for (const [organizationId, { calls }] of this.organizations)
      for (const [fairnessKey, items] of calls)
        for (const item of items) copy.add(item, { organizationId, fairnessKey });
    for (let item = copy.take(); item !== undefined; item = copy.take()) yield item;
  }
}

/** At most how many turns come before the next one of somebody who has some already, beside others. */
function turnsBefore(own: number, others: number): number {
  return own + (own + 1) * others;
}

function toEnd<K, V>(map: Map<K, V>, key: K): void {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
}
