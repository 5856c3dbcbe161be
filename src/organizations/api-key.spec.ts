import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { displayPrefix, redactApiKeys } from '../domain/api-key-text.js';
import { generateKey, hashKey, isWellFormedKey } from './api-key.js';

const CHARACTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const KEY_LENGTH = 53;
const key = fc.constant(null).map(() => generateKey());

describe('a generated key', () => {
  it('has the documented format and a valid checksum', () => {
    for (let count = 0; count < 200; count += 1) {
      const made = generateKey();
      expect(made).toMatch(/^ctk_[0-9A-Za-z]{49}$/);
      expect(isWellFormedKey(made)).toBe(true);
    }
  });

  it('draws each character of its random part from the whole alphabet', () => {
    const keys = Array.from({ length: 3_000 }, generateKey);
    for (const place of [5, 20, 46]) {
      expect(new Set(keys.map((made) => made.charAt(place))).size).toBe(CHARACTERS.length);
    }
  });
});

describe('the checksum', () => {
  it('catches any single wrong character', () => {
    const change = fc.record({ key, place: fc.nat(KEY_LENGTH - 1), character: fc.constantFrom(...CHARACTERS) });
    fc.assert(
      fc.property(change, ({ key: good, place, character }) => {
        fc.pre(good.charAt(place) !== character);
        expect(isWellFormedKey(good.slice(0, place) + character + good.slice(place + 1))).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it('refuses a key with added or missing characters', () => {
    fc.assert(
      fc.property(key, fc.string({ minLength: 1, maxLength: 3 }), fc.nat(KEY_LENGTH - 1), (good, text, place) => {
        expect(isWellFormedKey(text + good)).toBe(false);
        expect(isWellFormedKey(good + text)).toBe(false);
        expect(isWellFormedKey(good.slice(0, place) + good.slice(place + 1))).toBe(false);
      }),
    );
    expect(isWellFormedKey(`${generateKey()}\n`)).toBe(false);
  });

  it('does not change between versions, so that issued keys stay valid', () => {
    expect(isWellFormedKey('ctk_GyZu31dyTCUg2FcHlTUClJ9eHT7usNW7JNmujufqI3Y27PRY4')).toBe(true);
  });
});

describe('the stored part of a key', () => {
  it('is its SHA-256', () => {
    const made = generateKey();
    expect(hashKey(made).equals(createHash('sha256').update(made, 'utf8').digest())).toBe(true);
  });

  it('and a prefix that does not reveal more than 200 of its random bits', () => {
    expect(displayPrefix(generateKey())).toMatch(/^ctk_[0-9A-Za-z]{6}$/);
  });

  it('is all that errors and logs show', () => {
    fc.assert(
      fc.property(key, fc.string(), fc.string(), (made, before, after) => {
        expect(redactApiKeys(`${before} ${made} ${after}`)).not.toContain(made.slice(0, 11));
      }),
    );
    expect(redactApiKeys('No ctk_tail and key_0123 are untouched.')).toBe('No ctk_tail and key_0123 are untouched.');
  });
});
