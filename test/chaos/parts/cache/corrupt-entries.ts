import { RESP_TYPES, createClient } from '@redis/client';
import type { RandomSource } from '../../harness/random.js';
import type { EntrySigner } from './entry-signer.js';

/** A connection that returns values as raw bytes. */
export async function connectBytes(url: string) {
  const client = createClient({ url });
  client.on('error', () => undefined);
  await client.connect();
  return client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
}

export type Bytes = Awaited<ReturnType<typeof connectBytes>>;

/** The kind of an entry, by its key: `text` and `deflated` are the transcripts. */
export type Kind = 'id' | 'channel' | 'uploads' | 'known' | 'text' | 'deflated';

export interface Entry {
  key: string;
  kind: Kind;
  /** As stored, including the signature. */
  value: Buffer;
}

/** The effect of a corruption: whether the entry is still a string, which the service reads and must reject. */
export interface Poisoned {
  key: string;
  kind: Kind;
  unreadable: boolean;
}

export interface Poison {
  name: string;
  /** The entries that it applies to. */
  fits: (entry: Entry) => boolean;
  apply(this: void, at: Place): Promise<Poisoned[]>;
}

interface Place {
  bytes: Bytes;
  entry: Entry;
  /** The entries that it may be exchanged with. */
  others: readonly Entry[];
  random: RandomSource;
  /** With the secret of the service. */
  signer: EntrySigner;
  /** With another one. */
  forger: EntrySigner;
}

const isText = ({ kind }: Entry): boolean => kind === 'text' || kind === 'deflated';
const any = (): boolean => true;

/** Every kind of corruption, each applied to one entry. */
export const POISONS: readonly Poison[] = [
  replacing('truncated at any byte', any, ({ value }, random) => value.subarray(0, random.below(value.length))),
  replacing('empty', any, () => Buffer.alloc(0)),
  replacing('bytes added', isText, ({ value }, random) => Buffer.concat([value, random.bytes(1 + random.below(9))])),
  replacing('one byte changed', isText, ({ value }, random) => {
    const copy = Buffer.from(value);
    const at = random.below(copy.length);
    copy[at] = (copy[at] ?? 0) ^ (1 + random.below(255));
    return copy;
  }),
  replacing('random bytes of the same length', any, ({ value }, random) => random.bytes(Math.min(value.length, 5_000))),
  // Forgeries: values of the service, or like them, signed without its secret.
  replacing('value without its signature', any, (entry, _chance, { signer }) => signer.open(entry)),
  replacing('value signed with another secret', any, (entry, _chance, { signer, forger }) =>
    forger.seal(entry, signer.open(entry)),
  ),
  replacing('truncated within its signature', any, ({ value }, random) => value.subarray(1 + random.below(15))),
  // Correctly signed but malformed, as by a bug of another version.
  signed('other JSON', any, (_value, random) => Buffer.from(random.pick(OTHER_JSON))),
  signed('a field of another type', (entry) => !isText(entry), corrupted),
  signed('truncated value', any, (value, random) => value.subarray(0, random.below(value.length))),
  signed("Keyv's envelope", any, (value) => Buffer.from(JSON.stringify({ value: value.toString(), expires: 4e12 }))),
  signed('base64', any, (value) => Buffer.from(`:base64:${value.toString('base64')}`)),
  signed(
    'an entry of an older version',
    (entry) => !isText(entry),
    (_value, random) => Buffer.from(random.pick(OLDER_FORMS)),
  ),
  { name: 'a Redis list, hash, set or stream', fits: any, apply: otherType },
  {
    name: "another video's text",
    fits: isText,
    apply: (at) => swapped(at, (other) => other.kind === at.entry.kind),
  },
  {
    name: "another video's text, signed for this one",
    fits: isText,
    apply: ({ bytes, entry, others, signer }) => resigned(bytes, entry, others, signer),
  },
  {
    name: 'JSON and deflated text exchanged',
    fits: isText,
    apply: (at) => swapped(at, (other) => other.kind !== at.entry.kind && isText(other)),
  },
  {
    name: "another video's or channel's entry",
    fits: (entry) => !isText(entry),
    apply: (at) => swapped(at, (other) => other.kind === at.entry.kind),
  },
  { name: 'deleted', fits: any, apply: async ({ bytes, entry: { key } }) => bytes.del(key).then(() => []) },
  { name: 'additional keys of other versions', fits: any, apply: otherVersions },
];

const OTHER_JSON = [
  'null',
  'true',
  '0',
  '""',
  '[]',
  '{}',
  '[{}]',
  '{"ok":true}',
  '{"__proto__":{"ok":true}}',
  '"UC"x',
  '{"details":null}',
  '\u0000',
];
const OLDER_FORMS = [
  '{"ok":true,"transcript":{"en":[{"text":"from an older version","start":0,"duration":1}]}}',
  '{"transcript":"{\\"en\\":[]}","details":{}}',
  '{"details":{"publishedAt":null,"durationSeconds":null,"viewCount":null,"kind":null},"jsonBytes":2,"crc32":0}',
  '{"id":"UC","name":"x"}',
  '{"videos":[],"complete":true}',
  '{"uploads":[{"videoId":"hl-dinghy__"}],"complete":true}',
];

function replacing(
  name: string,
  fits: Poison['fits'],
  change: (entry: Entry, random: RandomSource, place: Place) => Buffer,
): Poison {
  return {
    name,
    fits,
    apply: async (place) => {
      const { bytes, entry, random } = place;
      const { key, kind } = entry;
      await bytes.set(key, change(entry, random, place), { expiration: 'KEEPTTL' });
      return [{ key, kind, unreadable: true }];
    },
  };
}

/** Changes the value and signs it with the secret of the service. */
function signed(name: string, fits: Poison['fits'], change: (value: Buffer, random: RandomSource) => Buffer): Poison {
  return replacing(`${name}, signed`, fits, (entry, random, { signer }) =>
    signer.seal(entry, change(signer.open(entry), random)),
  );
}

/** Removes a field of the entry, or replaces it by one of another type. */
function corrupted(stored: Buffer, random: RandomSource): Buffer {
  const { key, value } = JSON.parse(stored.toString()) as { key: string; value: unknown };
  const write = (corruptedValue: unknown): Buffer => Buffer.from(JSON.stringify({ key, value: corruptedValue }));
  if (typeof value !== 'object' || value === null) return write([value]);
  const required: [string, unknown][] = Object.entries(value).filter(([name]) => name !== 'message');
  const [name, field] = random.pick(required);
  const wrong = typeof field === 'string' ? 1 : typeof field === 'object' ? 'text' : [field];
  return write({ ...value, [name]: random.often(0.5) ? wrong : undefined });
}

async function otherType({ bytes, entry: { key, kind }, random }: Place): Promise<Poisoned[]> {
  await bytes.del(key);
  await random.pick([
    () => bytes.rPush(key, ['a', 'b']),
    () => bytes.hSet(key, { value: 'a' }),
    () => bytes.sAdd(key, 'a'),
    () => bytes.zAdd(key, { score: 1, value: 'a' }),
    () => bytes.xAdd(key, '*', { value: 'a' }),
  ])();
  // Redis returns nothing for it, which is a regular cache miss.
  return [{ key, kind, unreadable: false }];
}

async function swapped({ bytes, entry, others }: Place, fits: (other: Entry) => boolean): Promise<Poisoned[]> {
  const other = others.find((one) => one.key !== entry.key && fits(one) && !one.value.equals(entry.value));
  if (!other) return [];
  await bytes.set(entry.key, other.value, { expiration: 'KEEPTTL' });
  await bytes.set(other.key, entry.value, { expiration: 'KEEPTTL' });
  return [entry, other].map(({ key, kind }) => ({ key, kind, unreadable: true }));
}

async function resigned(
  bytes: Bytes,
  entry: Entry,
  others: readonly Entry[],
  signer: EntrySigner,
): Promise<Poisoned[]> {
  const text = signer.open(entry);
  const other = others.find(({ key, kind }) => key !== entry.key && kind === entry.kind);
  if (!other || signer.open(other).equals(text)) return [];
  await bytes.set(entry.key, signer.seal(entry, signer.open(other)), { expiration: 'KEEPTTL' });
  return [{ key: entry.key, kind: entry.kind, unreadable: true }];
}

async function otherVersions({ bytes, entry: { key, value } }: Place): Promise<Poisoned[]> {
  const rest = key.slice(key.indexOf(':'));
  for (const version of ['ct0', 'ct1', 'ct2', 'ct3', 'ct5', 'ct', 'CT4']) {
    const other = version + rest;
    if (other !== key) await bytes.set(other, value.subarray(1), { NX: true, EX: 600 });
  }
  return [];
}
