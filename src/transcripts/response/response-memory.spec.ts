import { describe, expect, it } from '@jest/globals';
import { Environment } from '../../config/environment.js';
import { ServiceUnavailableError } from '../../domain/errors.js';
import { BufferedTexts, ResponseMemory } from './response-memory.js';

const MEGABYTE = 1024 * 1024;
const memoryOf = (megabytes: number): ResponseMemory =>
  new ResponseMemory(Object.assign(new Environment(), { RESPONSE_BUFFER_MAX_MEGABYTES: megabytes }));

describe('the memory for texts that wait', () => {
  it('counts a text once however many calls hold it, and until the last releases it', () => {
    const memory = memoryOf(1);
    const [one, other] = [new BufferedTexts(memory), new BufferedTexts(memory)];
    const text = Buffer.alloc(1_000);
    one.hold(text, 'waiting');
    one.hold(text, 'waiting');
    other.hold(text, 'waiting');
    expect(memory.heldBytes).toBe(1_000);
    one.release(text);
    one.release(text);
    expect(memory.heldBytes).toBe(1_000);
    other.close();
    expect(memory.heldBytes).toBe(0);
  });

  it('is given back by a call that nobody reads any more, whatever still arrives for it', () => {
    const memory = memoryOf(1);
    const buffered = new BufferedTexts(memory);
    buffered.hold(Buffer.alloc(5), 'waiting');
    buffered.hold(Buffer.alloc(6), 'waiting');
    buffered.close();
    buffered.hold(Buffer.alloc(7), 'waiting');
    expect(memory.heldBytes).toBe(0);
  });

  it('gives one call a sixteenth for what is fetched, whatever is on its way', () => {
    const held = new BufferedTexts(memoryOf(32));
    held.hold(Buffer.alloc(3 * MEGABYTE), 'passing');
    held.hold(Buffer.alloc(2 * MEGABYTE - 1), 'waiting');
    expect(held.mayFetch).toBe(true);
    held.hold(Buffer.alloc(1), 'waiting');
    expect(held.mayFetch).toBe(false);
  });

  it('refuses new calls and large texts when it is full, and lets calls that hold little go on', () => {
    const memory = memoryOf(32);
    const [small, large] = [new BufferedTexts(memory), new BufferedTexts(memory)];
    const others = Buffer.alloc(32 * MEGABYTE);
    large.hold(Buffer.alloc(MEGABYTE), 'waiting');
    expect(() => memory.refuseWhenFull()).not.toThrow();
    memory.hold(others);
    expect(() => memory.refuseWhenFull()).toThrow(ServiceUnavailableError);
    expect([small.mayFetch, large.mayFetch]).toEqual([true, false]);
    expect([small.mayRead(1_000), small.mayRead(MEGABYTE)]).toEqual([true, false]);
    memory.release(others);
    expect([large.mayFetch, small.mayRead(MEGABYTE)]).toEqual([true, true]);
    expect(() => memory.refuseWhenFull()).not.toThrow();
  });
});
