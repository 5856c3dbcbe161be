import { crc32 } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { deflate, inflate, type SentText, type TextForm, type TranscriptText } from './transcript-text.js';

/** A transcript whose text is to be read, and the cache key of what is known of it. */
export interface TextWanted {
  key: string;
  transcript: TranscriptText;
}

/** Where the texts are stored: several are read in one round trip; neither reading nor writing rejects. */
export interface TextStorage {
  read(keys: string[]): Promise<unknown[]>;
  /** Whether each key is there, without its value; false when that cannot be found out. */
  present(keys: string[]): Promise<boolean[]>;
  /** Resolves to whether others can read it now. */
  write(key: string, bytes: Buffer): Promise<boolean>;
  /** Called when a copy in this process was used instead of the stored value; `restore` stores that again. */
  touch(key: string, restore: () => Promise<unknown>): void;
  /** Called when a stored value was not what it should be. */
  unreadable(): void;
}

/** Before a deflated text stand the checksum of its JSON, so that it is never taken for another's, and its own. */
const DEFLATED_HEAD_BYTES = 8;
const FORMS = ['json', 'deflated'] as const satisfies readonly TextForm[];
/** Rough cost of a copy beside its bytes: the key, the list nodes, the map slot, the Buffer object. */
const OVERHEAD_BYTES = 600;

/**
 * The texts of transcripts as the cache keeps them: the JSON, and the same deflated once somebody took it so. What was
 * damaged, cut or belongs to another text is not found.
 */
export class TranscriptTextStore {
  /** The texts in stored values that were held against their checksum: in memory a value stays the same Buffer. */
  private readonly verified = new WeakMap<Buffer, { text: Buffer; checksum: number }>();
  private readonly deflating = new Map<string, Promise<Buffer>>();

  /** Copies of what was read last from another process; what is known of a video says whether one is still its text. */
  private readonly localCopies: LRUCache<string, Buffer> | undefined;

  /** @param localBytesMax room for copies in this process of texts that are kept in another; 0 for none */
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

  /** Those forms of a text that were stored. */
  found(transcript: TranscriptText, json: unknown, deflated: unknown): TranscriptText {
    const [plain, packed] = [this.asSent(transcript, 'json', json), this.asSent(transcript, 'deflated', deflated)];
    return { ...transcript, ...(plain && { json: plain }), ...(packed && { deflated: packed }) };
  }

  /** Whether each text is there in a form, without reading those that are in another process. */
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

  /** Texts in one form, in one round trip; undefined where a text is not there any more in any form. */
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

  /** Resolves to whether others can read it now. */
  async store(key: string, json: Buffer, checksum: number): Promise<boolean> {
    this.verified.set(json, { text: json, checksum });
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
      const text = this.asSent(one.transcript, form, value);
      if (text && Buffer.isBuffer(value)) this.localCopies?.set(this.keys(one.key)[form], value);
      read.set(one, text);
    }
    return read;
  }

  private readLocal({ key, transcript }: TextWanted, form: TextForm): Buffer | undefined {
    const textKey = this.keys(key)[form];
    const stored = this.localCopies?.get(textKey);
    const text = stored && this.checked(transcript, form, stored);
    if (text) this.storage.touch(textKey, () => this.restore(textKey));
    return text;
  }

  /** Stores again what was evicted from the storage although it is in use here. */
  private async restore(textKey: string): Promise<void> {
    const stored = this.localCopies?.peek(textKey);
    if (stored) await this.storage.write(textKey, stored);
  }

  private async write(key: string, bytes: Buffer): Promise<boolean> {
    this.localCopies?.set(key, bytes);
    return this.storage.write(key, bytes);
  }

  private asSent(transcript: TranscriptText, form: TextForm, value: unknown): Buffer | undefined {
    if (value === undefined || value === null) return undefined;
    const text = Buffer.isBuffer(value) ? this.checked(transcript, form, value) : undefined;
    if (!text) this.storage.unreadable();
    return text;
  }

  private checked({ jsonBytes, crc32: crc }: TranscriptText, form: TextForm, stored: Buffer): Buffer | undefined {
    if (form === 'json') return stored.length === jsonBytes ? this.intact(stored, stored, crc) : undefined;
    if (stored.length <= DEFLATED_HEAD_BYTES || stored.readUInt32LE(0) !== crc) return undefined;
    return this.intact(stored, stored.subarray(DEFLATED_HEAD_BYTES), stored.readUInt32LE(4));
  }

  private intact(stored: Buffer, text: Buffer, checksum: number): Buffer | undefined {
    const known = this.verified.get(stored);
    if (known) return known.checksum === checksum ? known.text : undefined;
    if (crc32(text) !== checksum) return undefined;
    this.verified.set(stored, { text, checksum });
    return text;
  }

  /** The JSON of a text of which only the deflated form is still stored: whichever is read less is evicted first. */
  private async inflated(one: TextWanted): Promise<Buffer | undefined> {
    const deflated = one.transcript.deflated ?? (await this.readStored([one], 'deflated')).get(one);
    if (!deflated) return undefined;
    const { jsonBytes, crc32: crc } = one.transcript;
    const json = await inflate(deflated, jsonBytes).catch(() => undefined);
    if (json?.length !== jsonBytes || crc32(json) !== crc) return undefined;
    await this.store(one.key, json, crc);
    return json;
  }

  /** Calls that need it at the same time wait for the same work. */
  private async deflated(one: TextWanted): Promise<Buffer | undefined> {
    const json = one.transcript.json ?? (await this.readStored([one], 'json')).get(one);
    if (!json) return undefined;
    const work = `${one.key} ${one.transcript.crc32}`;
    const known = this.deflating.get(work);
    if (known) return known;
    const made = this.deflateAndStore(one, json).finally(() => this.deflating.delete(work));
    this.deflating.set(work, made);
    return made;
  }

  private async deflateAndStore({ key, transcript }: TextWanted, json: Buffer): Promise<Buffer> {
    const deflated = await deflate(json);
    const head = Buffer.alloc(DEFLATED_HEAD_BYTES);
    head.writeUInt32LE(transcript.crc32, 0);
    head.writeUInt32LE(crc32(deflated), 4);
    const stored = Buffer.concat([head, deflated]);
    const text = stored.subarray(DEFLATED_HEAD_BYTES);
    this.verified.set(stored, { text, checksum: stored.readUInt32LE(4) });
    await this.write(this.keys(key).deflated, stored);
    return text;
  }
}
