import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Environment } from '../config/environment.js';
import { cacheSecret, isSecretGuessable } from './cache-secret.js';

const URL_OF_ALL = 'postgres://app:secret@db:5432/app';
let folder: string;

beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'channel-transcripts-'))));
afterAll(() => rmSync(folder, { recursive: true }));

const environment = (variables: Partial<Environment>): Environment => Object.assign(new Environment(), variables);
const secretOf = async (variables: Partial<Environment>): Promise<string> =>
  (await cacheSecret(environment({ DATA_DIR: join(folder, 'none'), ...variables }))).toString('hex');

describe('the secret of cache entries', () => {
  it('is the same wherever DATABASE_URL or CACHE_SECRET is, and is neither of them', async () => {
    const derived = await secretOf({ DATABASE_URL: URL_OF_ALL });
    expect(derived).toMatch(/^[0-9a-f]{64}$/);
    expect(await secretOf({ DATABASE_URL: URL_OF_ALL })).toBe(derived);
    const CACHE_SECRET = 'x'.repeat(32);
    const given = await secretOf({ DATABASE_URL: URL_OF_ALL, CACHE_SECRET });
    expect(await secretOf({ DATABASE_URL: 'postgres://other:role@db/app', CACHE_SECRET })).toBe(given);
    expect(given).not.toBe(derived);
    expect(given).not.toBe(Buffer.from(CACHE_SECRET).toString('hex'));
  });

  it('is another one with another DATABASE_URL', async () => {
    expect(await secretOf({ DATABASE_URL: `${URL_OF_ALL}2` })).not.toBe(await secretOf({ DATABASE_URL: URL_OF_ALL }));
  });

  it('is made once with the embedded database, readable by nobody else, and made anew when its file is cut', async () => {
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
    [URL_OF_ALL, undefined, false],
    ['postgres://app@db/app', 'x'.repeat(32), false],
    [undefined, undefined, false],
  ])('derived from %s with CACHE_SECRET %s is guessable: %s', (DATABASE_URL, CACHE_SECRET, guessable) => {
    expect(isSecretGuessable(environment({ DATABASE_URL, CACHE_SECRET }))).toBe(guessable);
  });
});
