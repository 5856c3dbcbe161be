import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../../test/any-text.js';
import { CircuitBreaker } from './circuit-breaker.js';
import type { EgressEvent } from './egress-state.js';
import { EgressStateStore, readEgressState } from './egress-state-store.js';
import { StoredEgressState } from './stored-egress-state.js';

/** Documents in memory, as several replicas share them. */
function documents() {
  const stored = new Map<string, Buffer>();
  const server = {
    available: true,
    keys: () => [...stored.keys()],
    stored: (key: string) => stored.get(key),
    configured: true,
    keyOf: (kind: string, name: string) => `${kind} ${name.length}`,
    update: (key: string, _ttlMs: number, change: (bytes: Buffer | undefined) => Buffer | undefined) => {
      if (!server.available) return Promise.resolve(undefined);
      const changed = change(stored.get(key));
      if (changed) stored.set(key, changed);
      return Promise.resolve(stored.get(key));
    },
    claimedForMs: 0,
    claim: (key: string, ttlMs: number) => {
      server.claimedForMs = ttlMs;
      if (stored.has(key)) return Promise.resolve(null);
      stored.set(key, Buffer.alloc(1));
      return Promise.resolve(() => Promise.resolve(void stored.delete(key)));
    },
  };
  return server;
}

function replica(server: ReturnType<typeof documents>) {
  const store = new EgressStateStore(server);
  const state = new StoredEgressState();
  store.add('direct video', state);
  return { store, state };
}

const answered = (count: number, atMs: number): EgressEvent => ({ kind: 'answered', paced: 'captions', count, atMs });
const sent = (count: number, atMs: number): EgressEvent => ({ kind: 'sent', paced: 'captions', count, atMs });
const opened = (atMs: number): EgressEvent => ({
  ...{ kind: 'opened', atMs, pauseMs: 60_000, exactly: false, by: 'captions' },
});
const closed = (atMs: number): EgressEvent => ({ kind: 'closed', atMs });

describe('EgressStateStore', () => {
  it('adds the requests of all replicas', async () => {
    const server = documents();
    const [one, other] = [replica(server), replica(server)];
    one.state.record(answered(30, 1_000));
    await one.store.exchange();
    await other.store.exchange();
    other.state.record(answered(12, 2_000));
    await other.store.exchange();
    await one.store.exchange();
    expect(one.state.current.paces.captions.answered).toBe(42);
    expect(one.state.current).toEqual(other.state.current);
  });

  it('a refusal of one replica pauses all of them, and a restarted one', async () => {
    const server = documents();
    const [one, other] = [replica(server), replica(server)];
    await Promise.all([one.store.exchange(), other.store.exchange()]);
    for (const event of [sent(100, 1_000), answered(100, 1_500)]) one.state.record(event);
    one.state.record(opened(2_000));
    await one.store.exchange();
    // Refused for the same reason before it knew of the first refusal.
    other.state.record(opened(2_100));
    await other.store.exchange();
    expect(other.state.pause).toMatchObject({ openedAtMs: 2_000, untilMs: 62_000 });
    other.state.record(closed(62_000));
    await other.store.exchange();
    const restarted = replica(server);
    await restarted.store.refresh();
    expect(restarted.state.pause.openedAtMs).toBeNull();
    expect(restarted.state.current.paces.captions.ratePerSecond).toBeCloseTo((0.97 * 100) / 61);
  });

  it('a pause of another replica is reported once when it begins and when it ends', async () => {
    const server = documents();
    const clock = { nowMs: 0 };
    const replicas = [replica(server), replica(server)].map(({ store, state }) => {
      const changes: (number | null)[] = [];
      const breaker = new CircuitBreaker(
        () => clock.nowMs,
        (openForMs) => changes.push(openForMs),
        ...([undefined, undefined, state] as const),
      );
      return { store, breaker, changes };
    });
    const exchange = async () => {
      for (const { store } of replicas) await store.exchange();
    };
    await exchange();
    replicas[0]?.breaker.refuse({ address: true, retryAfterSeconds: 60, by: 'player' });
    clock.nowMs += 1_000;
    await exchange();
    await exchange();
    clock.nowMs += 59_000;
    replicas[0]?.breaker.admit()?.succeeded();
    await exchange();
    expect(replicas.map(({ changes }) => changes)).toEqual([
      [60_000, null],
      [59_000, null],
    ]);
  });

  it('leaves alone the states of releases with another format', async () => {
    const server = documents();
    const earlier = Buffer.from('{"paces":{"player":{"sent":7}}}');
    await server.update(server.keyOf('egress', 'direct video'), 1, () => earlier);
    const one = replica(server);
    one.state.record(answered(5, 1_000));
    await one.store.exchange();
    expect(server.stored(server.keyOf('egress', 'direct video'))).toEqual(earlier);
    expect(server.keys()).toHaveLength(2);
  });

  it('continues with what it knows while Redis is unavailable, and shares that afterwards', async () => {
    const server = documents();
    const [one, other] = [replica(server), replica(server)];
    await one.store.exchange();
    server.available = false;
    one.state.record(answered(5, 1_000));
    await one.store.exchange();
    one.state.record(opened(2_000));
    await one.store.exchange();
    expect(one.state.pause.openedAtMs).toBe(2_000);
    server.available = true;
    await one.store.exchange();
    await other.store.exchange();
    expect(other.state.pause.openedAtMs).toBe(2_000);
    expect(other.state.current.paces.captions.answered).toBe(5);
  });

  it('one replica probes at a time', async () => {
    const server = documents();
    const [one, other] = [replica(server), replica(server)];
    const release = await one.store.claimProbe('direct video', 120_000);
    expect(release).not.toBeNull();
    expect(await other.store.claimProbe('direct video', 120_000)).toBeNull();
    expect(server.claimedForMs).toBeGreaterThanOrEqual(120_000);
    await release?.();
    expect(await other.store.claimProbe('direct video', 120_000)).not.toBeNull();
  });

  it('shares nothing without Redis', async () => {
    const store = new EgressStateStore(undefined);
    const state = new StoredEgressState();
    store.add('direct video', state);
    state.record(sent(1, 1));
    await store.refresh();
    await store.close();
    expect(await store.claimProbe('direct video', 120_000)).not.toBeNull();
    expect(state.hasPending).toBe(true);
  });
});

describe('readEgressState', () => {
  it('reads what was written', () => {
    const state = new StoredEgressState();
    for (const event of [sent(7, 1_000), answered(6, 1_500), opened(2_000), closed(9_000), sent(2, 10_000)])
      state.record(event);
    expect(readEgressState(Buffer.from(JSON.stringify(state.current)))).toEqual(state.current);
  });

  it('refuses everything else', () => {
    const complete = JSON.parse(JSON.stringify(new StoredEgressState().current)) as Record<string, unknown>;
    const refused = (text: string) => expect(readEgressState(Buffer.from(text))).toBeUndefined();
    fc.assert(fc.property(anyText(), refused));
    fc.assert(fc.property(fc.json(), refused));
    for (const field of Object.keys(complete))
      fc.assert(
        fc.property(fc.jsonValue(), (value) => {
          const damaged = { ...complete, [field]: value };
          refused(JSON.stringify(damaged));
        }),
      );
  });
});
