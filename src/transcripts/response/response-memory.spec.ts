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
    const [one, other] = [new HeldTexts(memory), new HeldTexts(memory)];
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
    const held = new HeldTexts(memory);
    held.addFetched(Buffer.alloc(5));
    held.add(Buffer.alloc(6));
    held.close();
    held.addFetched(Buffer.alloc(7));
    expect(memory.heldBytes).toBe(0);
  });

  it('limits one call to a sixteenth for fetched texts, whatever it found in the cache', () => {
    const held = new HeldTexts(memoryOf(32));
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
    const [small, large] = [new HeldTexts(memory), new HeldTexts(memory)];
    const others = Buffer.alloc(32 * MEGABYTE);
    large.addFetched(Buffer.alloc(MEGABYTE));
    expect(() => memory.refuseWhenFull()).not.toThrow();
    memory.add(others);
    expect(() => memory.refuseWhenFull()).toThrow(ServiceUnavailableError);
    expect([small.mayFetch, large.mayFetch]).toEqual([true, false]);
    memory.release(others);
    expect(large.mayFetch).toBe(true);
    expect(() => memory.refuseWhenFull()).not.toThrow();
  });
});
