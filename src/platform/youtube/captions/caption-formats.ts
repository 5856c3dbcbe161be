import type { Segment } from '../../../domain/transcript.js';
import { asArray, asNumber, at, isObject, UnreadableError } from '../response-parsing.js';
import { checkCueLength, plainText } from './plain-text.js';

/**
 * Maximum length of a caption document in UTF-16 code units, of which there are never more than bytes in the body. The
 * captions of a ten-hour video have about 2 million.
 */
export const CAPTION_LENGTH_MAX = 4 * 1024 * 1024;

/** True for a body without content: the platform refuses a caption URL that requires a token; it never means "no captions". */
export function isEmptyBody(text: string): boolean {
  return text.trim() === '';
}

/**
 * Reads a caption document in the json3 form. Events without `segs` are window definitions. An appended event
 * (`aAppend: 1`, the line break of a roll-up) has only white space and is skipped like every other cue without text; one
 * with text is included. A missing time is 0, which the format may omit.
 *
 * @throws UnreadableError for a body that is empty, truncated or of another form
 */
export function readCaptionJson3(text: string): Segment[] {
  checkLength(text);
  const events = at(parseJson(text), 'events');
  if (!Array.isArray(events)) throw new UnreadableError('a list of caption events');
  const segments: Segment[] = [];
  for (const event of events as readonly unknown[]) {
    if (!isObject(event)) throw new UnreadableError('a caption event');
    if (event['segs'] === undefined) continue;
    const words = readWords(event['segs']);
    if (words === '') continue;
    const start = event['tStartMs'] === undefined ? 0 : asNumber(event['tStartMs']);
    if (start === null) throw new UnreadableError('a number in tStartMs');
    segments.push(segmentOf(words, start, asNumber(event['dDurationMs'])));
  }
  return sortedByStart(segments);
}

export function checkLength(text: string): void {
  if (text.length > CAPTION_LENGTH_MAX) {
    throw new UnreadableError(`captions of at most ${CAPTION_LENGTH_MAX} characters`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableError('JSON');
  }
}

function readWords(segs: unknown): string {
  if (!Array.isArray(segs)) throw new UnreadableError('a list in segs');
  let words = '';
  for (const seg of asArray(segs)) {
    const part = at(seg, 'utf8');
    if (part !== undefined && typeof part !== 'string') throw new UnreadableError('a string in utf8');
    words += part ?? '';
  }
  return plainText(checkCueLength(words));
}

/** A segment with times in seconds, rounded to milliseconds and at least 0. */
export function segmentOf(text: string, startMs: number, durationMs: number | null): Segment {
  return { text, start: seconds(startMs), duration: seconds(durationMs ?? 0) };
}

function seconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds)) / 1000;
}

export function sortedByStart(segments: Segment[]): Segment[] {
  const sorted = segments.every((segment, index) => index === 0 || (segments[index - 1]?.start ?? 0) <= segment.start);
  return sorted ? segments : segments.sort((one, other) => one.start - other.start);
}
