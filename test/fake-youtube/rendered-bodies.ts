import { gzipSync } from 'node:zlib';
import type { FakeResponse } from './fake-response.js';
import { project } from './partial-response.js';

/** A response ready to send. */
export interface RenderedBody {
  status: number;
  contentType: string;
  encoding: 'gzip' | 'identity';
  bytes: Buffer;
}

/** Smaller bodies are not compressed. */
const GZIP_BYTES_MIN = 1_024;
const STORED_BYTES_MAX = 128 * 1_024 * 1_024;
const GZIP_LEVEL = 1;

/** Renders responses and caches the expensive ones: in benchmarks the fake YouTube must cost little beside the service. */
export class RenderedBodies {
  private readonly stored = new Map<string, Buffer>();
  private storedBytes = 0;

  /**
   * @param fields the `$fields` parameter, null when there is none or the client's is ignored
   * @returns undefined when `fields` cannot be read
   */
  write(response: FakeResponse, fields: string | null, acceptsGzip: boolean): RenderedBody | undefined {
    const key = response.cacheKey === undefined ? undefined : `${response.cacheKey} ${fields ?? ''}`;
    const plain = this.store(key, () => plainBody(response, fields));
    if (!plain) return undefined;
    const { status, contentType } = response;
    if (!acceptsGzip || plain.length < GZIP_BYTES_MIN)
      return { status, contentType, encoding: 'identity', bytes: plain };
    const bytes = this.store(key && `${key} gzip`, () => gzipSync(plain, { level: GZIP_LEVEL })) ?? plain;
    return { status, contentType, encoding: 'gzip', bytes };
  }

  private store(key: string | undefined, make: () => Buffer | undefined): Buffer | undefined {
    const found = key === undefined ? undefined : this.stored.get(key);
    if (found) return found;
    const bytes = make();
    if (key === undefined || !bytes) return bytes;
    this.stored.set(key, bytes);
    this.storedBytes += bytes.length;
    for (const [oldest, { length }] of this.stored) {
      if (this.storedBytes <= STORED_BYTES_MAX) break;
      this.stored.delete(oldest);
      this.storedBytes -= length;
    }
    return bytes;
  }
}

function plainBody(response: FakeResponse, fields: string | null): Buffer | undefined {
  if ('text' in response.body) return Buffer.from(response.body.text());
  const json = response.body.json();
  // `$fields` does not apply to errors.
  const cut = fields === null || response.status !== 200 ? json : project(json, fields);
  return cut === undefined ? undefined : Buffer.from(JSON.stringify(cut));
}
