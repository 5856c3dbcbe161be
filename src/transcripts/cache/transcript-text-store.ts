import { crc32 } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { deflate, inflate, type SentText, type TextForm, type TranscriptText } from './transcript-text.js';

/** A transcript whose text is to be read, and the cache key of its outcome. */
export interface TextWanted {
  key: string;
  transcript: TranscriptText;
}

/** The storage of the texts. Several are read in one round trip; neither reading nor writing rejects. */
export interface TextStorage {
  read(keys: string[]): Promise<unknown[]>;
  /** Whether each key is stored, without reading its value; false when that is unknown. */
  present(keys: string[]): Promise<boolean[]>;
  /** Resolves to whether other processes can read it. */
  write(key: string, bytes: Buffer): Promise<boolean>;
  /** Called when a local copy was used instead of the stored value; `restore` stores the value again. */
  touch(key: string, restore: () => Promise<unknown>): void;
  /** Called when a stored value is damaged. */
  unreadable(): void;
}

/** A text whose own checksum was correct. */
interface IntactText {
  readonly text: Buffer;
  /** The checksum of its JSON, which identifies the transcript. */
  readonly jsonCrc32: number;
}

/** A deflated text is preceded by the checksum of its JSON, which identifies the transcript, and by its own. */
const DEFLATED_HEAD_BYTES = 8;
const FORMS = ['json', 'deflated'] as const satisfies readonly TextForm[];
/** Approximate memory of a copy in addition to its bytes: key, list nodes, map slot, Buffer object. */
const OVERHEAD_BYTES = 600;

/**
 * The cached texts of transcripts: the JSON, and its deflated form from the first time that it is sent. A text that is
 * damaged, truncated or of another transcript counts as missing.
 */
export class TranscriptTextStore {
  /** Intact values, with their texts: in memory a value stays the same Buffer, so that its checksum is computed once. */
  private readonly verified = new WeakMap<Buffer, IntactText>();
  private readonly deflating = new Map<string, Promise<Buffer>>();

  /** Copies of the texts read last from a shared cache. The checksum in the outcome of a video shows whether its copy is current. */
  private readonly localCopies: LRUCache<string, Buffer> | undefined;

  /** @param localBytesMax size limit of the local copies of texts in a shared cache; 0 for no copies */
  constructor(
    private readonly storage: TextStorage,
    localBytesMax: number,
  ) {
    if (localBytesMax === 0) return;
    this.localCopies = new LRUCache({
      maxSize: localBytesMax,
      sizeCalculation: ({ byteLength }) => byteLength + OVERHEAD_BYTES,
    });
  }

  /** The keys of both forms of a text. */
  keys(key: string): Record<TextForm, string> {
    return { json: `${key}:json`, deflated: `${key}:deflated` };
  }

  /** Adds the stored forms that are intact to a text. */
  found(transcript: TranscriptText, json: unknown, deflated: unknown): TranscriptText {
    return {
      ...transcript,
      json: this.intactText(transcript, 'json', json),
      deflated: this.intactText(transcript, 'deflated', deflated),
    };
  }

  /** Whether each text is available in a form, without reading those in a shared cache. */
  async present(wanted: readonly TextWanted[]): Promise<boolean[]> {
    const found = new Map(wanted.map((one) => [one, FORMS.some((form) => this.readLocal(one, form) !== undefined)]));
    for (const form of FORMS) {
      const open = wanted.filter((one) => !found.get(one));
      if (open.length === 0) break;
      const present = await this.storage.present(open.map(({ key }) => this.keys(key)[form]));
      for (const [index, one] of open.entries()) found.set(one, present[index] === true);
    }
    return wanted.map((one) => found.get(one) === true);
  }

  /** Reads texts in one form, in one round trip; undefined for a text that is missing in both forms. */
  async read(wanted: readonly TextWanted[], form: TextForm): Promise<(SentText | undefined)[]> {
    const stored = await this.readStored(
      wanted.filter(({ transcript }) => !transcript[form] && !transcript.json),
      form,
    );
    return Promise.all(
      wanted.map(async (one) => {
        const { jsonBytes, crc32 } = one.transcript;
        const known = one.transcript[form] ?? stored.get(one);
        const bytes = known ?? (await (form === 'deflated' ? this.deflated(one) : this.inflated(one)));
        return bytes && { bytes, jsonBytes, crc32 };
      }),
    );
  }

  /** Resolves to whether other processes can read it. */
  async store(key: string, json: Buffer, checksum: number): Promise<boolean> {
    this.verified.set(json, { text: json, jsonCrc32: checksum });
    return this.write(this.keys(key).json, json);
  }

  private async readStored(
    wanted: readonly TextWanted[],
    form: TextForm,
  ): Promise<Map<TextWanted, Buffer | undefined>> {
    const read = new Map(wanted.map((one) => [one, this.readLocal(one, form)]));
    const missing = wanted.filter((one) => !read.get(one));
    if (missing.length === 0) return read;
    const values = await this.storage.read(missing.map(({ key }) => this.keys(key)[form]));
    for (const [index, one] of missing.entries()) {
      const value = values[index];
      const text = this.intactText(one.transcript, form, value);
      if (text && Buffer.isBuffer(value)) this.localCopies?.set(this.keys(one.key)[form], value);
      read.set(one, text);
    }
    return read;
  }

  private readLocal({ key, transcript }: TextWanted, form: TextForm): Buffer | undefined {
    const textKey = this.keys(key)[form];
    const stored = this.localCopies?.get(textKey);
    const text = stored && this.verify(transcript, form, stored);
    if (text) this.storage.touch(textKey, () => this.restore(textKey));
    return text;
  }

  /** Stores a text again that was evicted from the storage although this process uses it. */
  private async restore(textKey: string): Promise<void> {
    const stored = this.localCopies?.peek(textKey);
    if (stored) await this.storage.write(textKey, stored);
  }

  private async write(key: string, bytes: Buffer): Promise<boolean> {
    this.localCopies?.set(key, bytes);
    return this.storage.write(key, bytes);
  }

  private intactText(transcript: TranscriptText, form: TextForm, value: unknown): Buffer | undefined {
    if (value === undefined || value === null) return undefined;
    const text = Buffer.isBuffer(value) ? this.verify(transcript, form, value) : undefined;
    if (!text) this.storage.unreadable();
    return text;
  }

  /** @returns undefined for a value that is damaged, truncated or of another transcript */
  private verify(transcript: TranscriptText, form: TextForm, stored: Buffer): Buffer | undefined {
    let intact = this.verified.get(stored);
    if (!intact) {
      intact = intactTextOf(form, stored);
      if (!intact) return undefined;
      this.verified.set(stored, intact);
    }
    const { text, jsonCrc32 } = intact;
    const isIts = jsonCrc32 === transcript.crc32 && (form === 'deflated' || text.length === transcript.jsonBytes);
    return isIts ? text : undefined;
  }

  /** The JSON from the deflated form: the form that is read less is evicted first. */
  private async inflated(one: TextWanted): Promise<Buffer | undefined> {
    const deflated = one.transcript.deflated ?? (await this.readStored([one], 'deflated')).get(one);
    if (!deflated) return undefined;
    const { jsonBytes, crc32: crc } = one.transcript;
    const json = await inflate(deflated, jsonBytes).catch(() => undefined);
    if (json?.length !== jsonBytes || crc32(json) !== crc) return undefined;
    await this.store(one.key, json, crc);
    return json;
  }

  /** The deflated form, deflated once for concurrent calls. */
  private async deflated(one: TextWanted): Promise<Buffer | undefined> {
    const json = one.transcript.json ?? (await this.readStored([one], 'json')).get(one);
    if (!json) return undefined;
    const text = `${one.key} ${one.transcript.crc32}`;
    const running = this.deflating.get(text);
    if (running) return running;
    const deflating = this.deflateAndStore(one, json).finally(() => this.deflating.delete(text));
    this.deflating.set(text, deflating);
    return deflating;
  }

  private async deflateAndStore({ key, transcript }: TextWanted, json: Buffer): Promise<Buffer> {
    const deflated = await deflate(json);
    const head = Buffer.alloc(DEFLATED_HEAD_BYTES);
    head.writeUInt32LE(transcript.crc32, 0);
    head.writeUInt32LE(crc32(deflated), 4);
    const stored = Buffer.concat([head, deflated]);
    const text = stored.subarray(DEFLATED_HEAD_BYTES);
    this.verified.set(stored, { text, jsonCrc32: transcript.crc32 });
    await this.write(this.keys(key).deflated, stored);
    return text;
  }
}

function intactTextOf(form: TextForm, stored: Buffer): IntactText | undefined {
  if (form === 'json') return { text: stored, jsonCrc32: crc32(stored) };
  if (stored.length <= DEFLATED_HEAD_BYTES) return undefined;
  const text = stored.subarray(DEFLATED_HEAD_BYTES);
  return crc32(text) === stored.readUInt32LE(4) ? { text, jsonCrc32: stored.readUInt32LE(0) } : undefined;
}
