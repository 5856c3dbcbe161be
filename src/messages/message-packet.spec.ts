import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { NotAMessageError, PacketDeserializer, readPacket } from './message-packet.js';

describe('readPacket', () => {
  it.each<[string, unknown]>([
    ['a number', 1],
    ['null', null],
    ['a list', [{ pattern: 'a' }]],
    ['an object without a pattern and data', { id: '1' }],
    ['an id that is no text', { id: 1, pattern: 'a' }],
    ['an id that is longer than the service repeats', { id: 'x'.repeat(129), pattern: 'a' }],
  ])('takes %s for no message', (_name, value) => {
    expect(readPacket(value)).toBeUndefined();
  });

  it('takes a pattern that is no short text for an empty one, which nothing answers to', () => {
    expect(readPacket({ id: '1', pattern: { cmd: 'a' } })?.pattern).toBe('');
    expect(readPacket({ id: '1', pattern: '['.repeat(200) })?.pattern).toBe('');
    expect(readPacket({ id: '1', pattern: 'a' })?.pattern).toBe('a');
  });

  it('reads any JSON without an error', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const packet = readPacket(value);
        expect(packet === undefined || typeof packet.metadata === 'object').toBe(true);
      }),
    );
  });
});

describe('PacketDeserializer', () => {
  const read = (value: unknown, hasReply: boolean): unknown =>
    new PacketDeserializer(
      (one) => one,
      () => hasReply,
    ).deserialize(value);

  it('takes the content out of a message that wants no answer', () => {
    expect(read({ id: '1', pattern: 'a', data: 2 }, true)).toMatchObject({ id: '1', data: 2 });
    expect(read({ id: '1', pattern: 'a', data: 2 }, false)).toMatchObject({ data: undefined });
    expect(read({ pattern: 'a', data: 2 }, true)).toEqual({ pattern: 'a', data: undefined });
  });

  it('throws for what is no message', () => {
    expect(() => read('a', true)).toThrow(NotAMessageError);
  });
});
