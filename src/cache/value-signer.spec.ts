import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../test/any-text.js';
import { ValueSigner } from './value-signer.js';

const secret = randomBytes(32);
const signer = new ValueSigner(secret);
const anyValue = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const anyKey = anyText({ maxLength: 40 });

describe('a signed value', () => {
  it('verifies under its key, by another signer with the same secret', () => {
    fc.assert(
      fc.property(anyKey, anyValue, (key, value) => {
        expect(new ValueSigner(Buffer.from(secret)).verify(key, signer.sign(key, value))).toEqual(value);
      }),
    );
  });

  it('does not verify with any bit changed, cut anywhere, or with bytes added', () => {
    const stored = signer.sign('key', Buffer.from('{"en":[]}'));
    for (let bit = 0; bit < 8 * stored.length; bit += 1) {
      const changed = Buffer.from(stored);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(signer.verify('key', changed)).toBeUndefined();
    }
    for (let length = 0; length < stored.length; length += 1)
      expect(signer.verify('key', stored.subarray(0, length))).toBeUndefined();
    expect(signer.verify('key', Buffer.concat([stored, Buffer.alloc(1)]))).toBeUndefined();
  });

  it('does not verify under another key, though the bytes after the signature be the same', () => {
    fc.assert(
      fc.property(anyKey, anyKey, anyValue, (key, other, value) => {
        fc.pre(key !== other);
        expect(signer.verify(other, signer.sign(key, value))).toBeUndefined();
      }),
    );
    // The key and the value are told apart, wherever one ends and the other begins.
    const stored = signer.sign('key:a', Buffer.from('b'));
    const moved = Buffer.concat([stored.subarray(0, 16), Buffer.from('ab')]);
    expect(signer.verify('key:', moved)).toBeUndefined();
  });

  it('does not verify with another secret', () => {
    expect(new ValueSigner(randomBytes(32)).verify('key', signer.sign('key', Buffer.from('value')))).toBeUndefined();
  });
});
