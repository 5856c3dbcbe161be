import { gzipSync } from 'node:zlib';
import type { Answer } from './fake-response.js';
import { project } from './partial-response.js';

/** An answer ready to be sent. */
export interface WrittenAnswer {
  status: number;
  contentType: string;
  encoding: 'gzip' | 'identity';
  bytes: Buffer;
}

/** Bodies below this are sent as they are. */
const GZIP_BYTES_MIN = 1_024;
const KEPT_BYTES_MAX = 128 * 1_024 * 1_024;
const GZIP_LEVEL = 4;

/** Writes answers, and keeps what is expensive to write: the stand-in must cost little beside what is measured against it. */
export class WrittenBodies {
  private readonly kept = new Map<string, Buffer>();
  private keptBytes = 0;

  /**
   * @param fields the `$fields` parameter, null when there is none or the client's is ignored
   * @returns undefined when `fields` cannot be read
   */
  write(answer: Answer, fields: string | null, acceptsGzip: boolean): WrittenAnswer | undefined {
    const key = answer.cacheKey === undefined ? undefined : `${answer.cacheKey} ${fields ?? ''}`;
    const plain = this.keep(key, () => plainBody(answer, fields));
    if (!plain) return undefined;
    const { status, contentType } = answer;
    if (!acceptsGzip || plain.length < GZIP_BYTES_MIN)
      return { status, contentType, encoding: 'identity', bytes: plain };
    const bytes = this.keep(key && `${key} gzip`, () => gzipSync(plain, { level: GZIP_LEVEL })) ?? plain;
    return { status, contentType, encoding: 'gzip', bytes };
  }

  private keep(key: string | undefined, make: () => Buffer | undefined): Buffer | undefined {
    const found = key === undefined ? undefined : this.kept.get(key);
    if (found) return found;
    const bytes = make();
    if (key === undefined || !bytes) return bytes;
    this.kept.set(key, bytes);
    this.keptBytes += bytes.length;
    for (const [oldest, { length }] of this.kept) {
      if (this.keptBytes <= KEPT_BYTES_MAX) break;
      this.kept.delete(oldest);
      this.keptBytes -= length;
    }
    return bytes;
  }
}

function plainBody(answer: Answer, fields: string | null): Buffer | undefined {
  if ('text' in answer.body) return Buffer.from(answer.body.text());
  const json = answer.body.json();
  // An error is told in full whatever was asked for.
  const cut = fields === null || answer.status !== 200 ? json : project(json, fields);
  return cut === undefined ? undefined : Buffer.from(JSON.stringify(cut));
}
