import type { Segment } from '../../../domain/transcript.js';
import { CUE_LENGTH_MAX, decodeEntities, plainText } from './plain-text.js';

const HEAD = /(?:<\?xml [^<>?]*\?>)?\s*<transcript>/y;
const OPEN = '<text start="';
const DURATION = '" dur="';
const CLOSE = '</text>';
const END = '</transcript>';

const DIGITS_MAX = 15;
const ZERO = 0x30;
const NINE = 0x39;
const DOT = 0x2e;

/**
 * Reads a legacy caption document in the layout that nearly all of them have [recorded]: cues of
 * `<text start="…" dur="…">words</text>` with nothing in between. Parsing the tags of such a document took half of the time
 * that an uncached call spends on a video. Null for any other layout, which `readCaptionDocument` reads or rejects.
 */
export function readPlainCues(xml: string): Segment[] | null {
  HEAD.lastIndex = 0;
  if (!HEAD.test(xml)) return null;
  const segments: Segment[] = [];
  let position = HEAD.lastIndex;
  let lastStart = 0;
  while (xml.startsWith(OPEN, position)) {
    const startEnd = numberEnd(xml, position + OPEN.length);
    const timed = xml.startsWith(DURATION, startEnd);
    const durationEnd = timed ? numberEnd(xml, startEnd + DURATION.length) : startEnd;
    const wordsFrom = durationEnd + 2;
    const wordsTo = xml.indexOf('<', wordsFrom);
    if (!xml.startsWith('">', durationEnd) || wordsTo === -1 || !xml.startsWith(CLOSE, wordsTo)) return null;
    if (wordsTo - wordsFrom > CUE_LENGTH_MAX) return null;
    const start = seconds(xml.slice(position + OPEN.length, startEnd));
    position = wordsTo + CLOSE.length;
    const text = plainText(decodeEntities(decodeEntities(xml.slice(wordsFrom, wordsTo))));
    if (text === '') continue;
    if (start < lastStart) return null;
    lastStart = start;
    const duration = timed ? seconds(xml.slice(startEnd + DURATION.length, durationEnd)) : 0;
    segments.push({ text, start, duration });
  }
  return xml.startsWith(END, position) && xml.slice(position + END.length).trim() === '' ? segments : null;
}

/** The end of the decimal number at a position; -1 when there is none or it is too long. */
function numberEnd(xml: string, from: number): number {
  const wholeEnd = digitsEnd(xml, from);
  if (wholeEnd === -1 || xml.charCodeAt(wholeEnd) !== DOT) return wholeEnd;
  return digitsEnd(xml, wholeEnd + 1);
}

function digitsEnd(xml: string, from: number): number {
  let end = from;
  for (let code = xml.charCodeAt(end); code >= ZERO && code <= NINE; code = xml.charCodeAt(end)) end++;
  return end === from || end - from > DIGITS_MAX ? -1 : end;
}

/** Seconds, rounded to milliseconds. */
function seconds(written: string): number {
  return Math.round(Number(written) * 1000) / 1000;
}
