import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { Environment } from '../../config/environment.js';
import { ServiceUnavailableError } from '../../domain/errors.js';
import { HeldTexts, ResponseMemory } from './response-memory.js';

const MEGABYTE = 1024 * 1024;
const memoryOf = (megabytes: number): ResponseMemory =>
  new ResponseMemory(Object.assign(new Environment(), { RESPONSE_BUFFER_MAX_MEGABYTES: megabytes }), new Registry());

describe('the response memory', () => {
  it('counts a text once for all calls that share it, until the last of them releases it', () => {
    const memory = memoryOf(1);
    const [one, other] = [new HeldTexts(memory, 'org'), new HeldTexts(memory, 'org')];
    const text = Buffer.alloc(1_000);
    one.addFetched(text);
    one.addFetched(text);
    other.add(text);
    expect(memory.heldBytes).toBe(1_000);
    one.releaseFetched(text);
    one.releaseFetched(text);
    expect(memory.heldBytes).toBe(1_000);
    other.close();
    expect(memory.heldBytes).toBe(0);
  });

  it('does not count texts that arrive for a closed call', () => {
    const memory = memoryOf(1);
    const held = new HeldTexts(memory, 'org');
    held.addFetched(Buffer.alloc(5));
    held.add(Buffer.alloc(6));
    held.close();
    held.addFetched(Buffer.alloc(7));
    expect(memory.heldBytes).toBe(0);
  });

  it('limits one call to a sixteenth for fetched texts, whatever it found in the cache', () => {
    const held = new HeldTexts(memoryOf(32), 'org');
    held.add(Buffer.alloc(3 * MEGABYTE));
    const text = Buffer.alloc(2 * MEGABYTE - 1);
    held.addFetched(text);
    expect(held.mayFetch).toBe(true);
    held.addFetched(Buffer.alloc(1));
    expect(held.mayFetch).toBe(false);
    held.releaseFetched(text);
    expect(held.mayFetch).toBe(true);
  });

  it('refuses new calls when it is full, and lets running calls that hold little continue', () => {
    const memory = memoryOf(32);
    const [small, large] = [new HeldTexts(memory, 'org'), new HeldTexts(memory, 'org')];
    const others = Buffer.alloc(32 * MEGABYTE);
    large.addFetched(Buffer.alloc(MEGABYTE));
    expect(() => memory.refuseWhenFull('org')).not.toThrow();
    memory.add('others', others);
    expect(() => memory.refuseWhenFull('org')).toThrow(ServiceUnavailableError);
    expect([small.mayFetch, large.mayFetch]).toEqual([true, false]);
    memory.release('others', others);
    expect(large.mayFetch).toBe(true);
    expect(() => memory.refuseWhenFull('org')).not.toThrow();
  });

  it('refuses an organization that holds a quarter, and nobody else', () => {
    const memory = memoryOf(32);
    const [one, next] = [new HeldTexts(memory, 'org'), new HeldTexts(memory, 'org')];
    const texts = [Buffer.alloc(3 * MEGABYTE), Buffer.alloc(3 * MEGABYTE)];
    one.addCached(texts);
    // The same texts need no more room.
    next.addCached(texts);
    expect(() => next.addCached([Buffer.alloc(2 * MEGABYTE)])).toThrow('its share of the response buffer');
    expect(() => memory.refuseWhenFull('org')).not.toThrow();
    next.addFetched(Buffer.alloc(2 * MEGABYTE - 1));
    one.addFetched(Buffer.alloc(1));
    expect(() => memory.refuseWhenFull('org')).toThrow('its share of the response buffer');
    expect([one.mayFetch, next.mayFetch]).toEqual([true, false]);
    expect(() => new HeldTexts(memory, 'other').addCached([Buffer.alloc(7 * MEGABYTE)])).not.toThrow();
    for (const held of [one, next]) held.close();
    expect(() => memory.refuseWhenFull('org', [Buffer.alloc(7 * MEGABYTE)])).not.toThrow();
  });

  it('holds no more than the budget, whatever number of calls is planned at a time', () => {
    const memory = memoryOf(32);
    const accepted = Array.from({ length: 50 }, (_call, index) => {
      try {
        new HeldTexts(memory, `org_${index}`).addCached([Buffer.alloc(2 * MEGABYTE)]);
        return true;
      } catch {
        return false;
      }
    });
    expect(accepted.filter(Boolean)).toHaveLength(15);
    expect(memory.heldBytes).toBeLessThanOrEqual(memory.bytesMax);
  });

  it('has room for one call of any size', () => {
    expect(() => new HeldTexts(memoryOf(1), 'org').addCached([Buffer.alloc(2 * MEGABYTE)])).not.toThrow();
  });
});
