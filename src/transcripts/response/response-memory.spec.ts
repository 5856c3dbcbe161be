import { describe, expect, it } from '@jest/globals';
import { Environment } from '../../config/environment.js';
import { ServiceUnavailableError } from '../../domain/errors.js';
import { BufferedTexts, ResponseMemory } from './response-memory.js';

const MEGABYTE = 1024 * 1024;
const memoryOf = (megabytes: number): ResponseMemory =>
  new ResponseMemory(Object.assign(new Environment(), { RESPONSE_BUFFER_MAX_MEGABYTES: megabytes }));

describe('the response memory', () => {
  it('counts a text once for all calls that share it, until the last of them releases it', () => {
    const memory = memoryOf(1);
    const [one, other] = [new BufferedTexts(memory), new BufferedTexts(memory)];
    const text = Buffer.alloc(1_000);
    one.add(text, 'waiting');
    one.add(text, 'waiting');
    other.add(text, 'waiting');
    expect(memory.heldBytes).toBe(1_000);
    one.release(text);
    one.release(text);
    expect(memory.heldBytes).toBe(1_000);
    other.close();
    expect(memory.heldBytes).toBe(0);
  });

  it('does not count texts that arrive for a closed call', () => {
    const memory = memoryOf(1);
    const buffered = new BufferedTexts(memory);
    buffered.add(Buffer.alloc(5), 'waiting');
    buffered.add(Buffer.alloc(6), 'waiting');
    buffered.close();
    buffered.add(Buffer.alloc(7), 'waiting');
    expect(memory.heldBytes).toBe(0);
  });

  it('limits one call to a sixteenth for waiting texts, whatever is being sent', () => {
    const buffered = new BufferedTexts(memoryOf(32));
    buffered.add(Buffer.alloc(3 * MEGABYTE), 'passing');
    buffered.add(Buffer.alloc(2 * MEGABYTE - 1), 'waiting');
    expect(buffered.mayFetch).toBe(true);
    buffered.add(Buffer.alloc(1), 'waiting');
    expect(buffered.mayFetch).toBe(false);
  });

  it('refuses new calls and large texts when it is full, and lets calls with small buffers continue', () => {
    const memory = memoryOf(32);
    const [small, large] = [new BufferedTexts(memory), new BufferedTexts(memory)];
    const others = Buffer.alloc(32 * MEGABYTE);
    large.add(Buffer.alloc(MEGABYTE), 'waiting');
    expect(() => memory.refuseWhenFull()).not.toThrow();
    memory.add(others);
    expect(() => memory.refuseWhenFull()).toThrow(ServiceUnavailableError);
    expect([small.mayFetch, large.mayFetch]).toEqual([true, false]);
    expect([small.mayRead(1_000), small.mayRead(MEGABYTE)]).toEqual([true, false]);
    memory.release(others);
    expect([large.mayFetch, small.mayRead(MEGABYTE)]).toEqual([true, true]);
    expect(() => memory.refuseWhenFull()).not.toThrow();
  });
});
