import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../test/any-text.js';
import { Environment } from '../config/environment.js';
import { cacheSecret, isSecretGuessable, ValueSigner } from './cache-signatures.js';

const SHARED_URL = 'postgres://app:secret@db:5432/app';
let folder: string;

beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'channel-transcripts-'))));
afterAll(() => rmSync(folder, { recursive: true }));

const environment = (variables: Partial<Environment>): Environment => Object.assign(new Environment(), variables);
const secretOf = async (variables: Partial<Environment>): Promise<string> =>
  (await cacheSecret(environment({ DATA_DIR: join(folder, 'none'), ...variables }))).toString('hex');

describe('the secret of cache entries', () => {
  it('is derived from CACHE_SECRET or DATABASE_URL, and differs from both', async () => {
    const derived = await secretOf({ DATABASE_URL: SHARED_URL });
    expect(derived).toMatch(/^[0-9a-f]{64}$/);
    expect(await secretOf({ DATABASE_URL: SHARED_URL })).toBe(derived);
    const CACHE_SECRET = 'x'.repeat(32);
    const given = await secretOf({ DATABASE_URL: SHARED_URL, CACHE_SECRET });
    expect(await secretOf({ DATABASE_URL: 'postgres://other:role@db/app', CACHE_SECRET })).toBe(given);
    expect(given).not.toBe(derived);
    expect(given).not.toBe(Buffer.from(CACHE_SECRET).toString('hex'));
  });

  it('differs for another DATABASE_URL', async () => {
    expect(await secretOf({ DATABASE_URL: `${SHARED_URL}2` })).not.toBe(await secretOf({ DATABASE_URL: SHARED_URL }));
  });

  it('is generated once with the embedded database, readable by its owner only, and replaced when its file is truncated', async () => {
    const DATA_DIR = join(folder, 'data');
    const made = await secretOf({ DATA_DIR });
    expect(await secretOf({ DATA_DIR })).toBe(made);
    const file = join(DATA_DIR, 'cache-secret');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    writeFileSync(file, made.slice(0, 10));
    const anew = await secretOf({ DATA_DIR });
    expect(anew).toMatch(/^[0-9a-f]{64}$/);
    expect(await secretOf({ DATA_DIR })).toBe(anew);
  });

  it.each([
    ['postgres://app@db/app', undefined, true],
    ['postgres://app@db/app?password=secret', undefined, false],
    [SHARED_URL, undefined, false],
    ['postgres://app@db/app', 'x'.repeat(32), false],
    [undefined, undefined, false],
  ])('derived from %s with CACHE_SECRET %s is guessable: %s', (DATABASE_URL, CACHE_SECRET, guessable) => {
    expect(isSecretGuessable(environment({ DATABASE_URL, CACHE_SECRET }))).toBe(guessable);
  });
});

const secret = randomBytes(32);
const signer = new ValueSigner(secret);
const anyValue = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const anyKey = anyText({ maxLength: 40 });

describe('a signed value', () => {
  it('verifies under its key with any signer of the same secret', () => {
    fc.assert(
      fc.property(anyKey, anyValue, (key, value) => {
        expect(new ValueSigner(Buffer.from(secret)).verify(key, signer.sign(key, value))).toEqual(value);
      }),
    );
  });

  it('does not verify with a changed bit, truncated, or with bytes appended', () => {
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

  it('does not verify under another key, even when key and value concatenate to the same bytes', () => {
    fc.assert(
      fc.property(anyKey, anyKey, anyValue, (key, other, value) => {
        fc.pre(key !== other);
        expect(signer.verify(other, signer.sign(key, value))).toBeUndefined();
      }),
    );
    const stored = signer.sign('key:a', Buffer.from('b'));
    const moved = Buffer.concat([stored.subarray(0, 16), Buffer.from('ab')]);
    expect(signer.verify('key:', moved)).toBeUndefined();
  });

  it('does not verify with another secret', () => {
    expect(new ValueSigner(randomBytes(32)).verify('key', signer.sign('key', Buffer.from('value')))).toBeUndefined();
  });
});
