import type { Segment } from '../../domain/transcript.js';
import { finite, fromJson, listOf, record, text, type Reader } from '../cache/keyed-codec.js';

/** Parsing this many bytes takes about a millisecond, so that a long transcript does not block the event loop. */
const SLICE_BYTES = 128 * 1024;

/**
 * The boundary of two segments. It cannot occur within a JSON string, where each quotation mark but the last is escaped and
 * the last is followed by `,` or `}`.
 */
const BOUNDARY = '},{"text":"';

const segmentsReader: Reader<Segment[]> = listOf(record<Segment>({ text, start: finite, duration: finite }));

/** Consecutive segments of one language. */
export interface StoredPart {
  language: string;
  segments: readonly Segment[];
}

/**
 * Reads the stored JSON of a transcript slice by slice: the languages in the order of the caller's preference, the segments
 * in order of `start`. Each step parses one slice.
 *
 * @param json a text that `textOf` has serialized
 * @throws Error when the text is not a transcript, which its checksum excludes
 */
export function* storedParts(json: Buffer): Generator<StoredPart> {
  let open: string | undefined;
  for (let from = 0; from < json.length;) {
    const boundary = json.length - from > SLICE_BYTES ? json.indexOf(BOUNDARY, from + SLICE_BYTES) : -1;
    const to = boundary === -1 ? json.length : boundary + 1;
    const parts = parseSlice(json.subarray(from, to), open, boundary === -1);
    yield* parts;
    open = parts.at(-1)?.language;
    from = to + 1;
  }
}

/** The segments of the first language. */
export function* firstLanguage(json: Buffer): Generator<Segment> {
  let first: string | undefined;
  for (const { language, segments } of storedParts(json)) {
    first ??= language;
    if (language !== first) return;
    yield* segments;
  }
}

/** @param open the language that the slice continues; undefined for the first slice */
function parseSlice(slice: Buffer, open: string | undefined, isLast: boolean): StoredPart[] {
  const head = open === undefined ? '' : `{${JSON.stringify(open)}:[`;
  const complete = Buffer.concat([Buffer.from(head), slice, Buffer.from(isLast ? '' : ']}')]);
  const parts = fromJson(complete, (value) => {
    if (typeof value !== 'object' || value === null) return undefined;
    return listOf((entry: unknown) => (Array.isArray(entry) ? partOf(entry[0], entry[1]) : undefined))(
      Object.entries(value),
    );
  });
  if (!parts) throw new Error('A stored transcript is not readable.');
  return parts;
}

function partOf(language: unknown, value: unknown): StoredPart | undefined {
  const segments = segmentsReader(value);
  return typeof language === 'string' && segments ? { language, segments } : undefined;
}
