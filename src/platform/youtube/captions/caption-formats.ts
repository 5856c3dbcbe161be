import type { Segment } from '../../../domain/transcript.js';
import { asArray, asNumber, at, isObject, UnreadableError } from '../response-parsing.js';
import { decodeEntities, plainText } from './plain-text.js';

/** Maximum length of a cue, in UTF-16 code units before decoding; all captions of a ten-hour video have about 2 million. */
export const CUE_LENGTH_MAX = 256 * 1024;

/** The root of a document, after declarations and comments. */
const ROOT = /^\s*(?:<[?!][^>]*>\s*)*<(transcript|timedtext)(?:\s[^>]*)?\/?>/;
const CUE = /<(text|p)((?:\s[^<>]*)?)>/g;
/** Another cue in the text of a cue, or a section whose text would be lost as a tag. */
const NOT_IN_CUE = /<(?:(?:text|p)[\s>]|!\[CDATA\[)/;
const LINE_BREAK = /<br\s*\/?>/g;
const TAG = /<[^<>]*>/g;

/** The two forms of a document. Texts of the first are escaped twice, and its times are in seconds. */
const FORMS = {
  transcript: { start: /\sstart=["']([^"']*)/, duration: /\sdur=["']([^"']*)/, unitMs: 1000, escapedTwice: true },
  timedtext: { start: /\st=["']([^"']*)/, duration: /\sd=["']([^"']*)/, unitMs: 1, escapedTwice: false },
};

/**
 * Reads a caption document in any of its XML forms: legacy (`<transcript><text start dur>`, seconds, entities escaped
 * twice) and srv3 or srv2 (`<timedtext>` with `<p t d>` or `<text t d>`, milliseconds). A missing or invalid duration is 0.
 * Cues without text are skipped, so `[]` is a well-formed document without text.
 *
 * Reads cues instead of tags: a call reads the texts of a hundred videos, and a reader of every tag takes twice as long.
 *
 * @throws UnreadableError for a body that is empty, truncated or of another form
 */
export function readCaptionXml(body: string): Segment[] {
  const text = body.trimEnd();
  const [opening = '', root] = ROOT.exec(text) ?? [];
  if (root !== 'transcript' && root !== 'timedtext') throw new UnreadableError('a caption document');
  const isWhole = opening.endsWith('/>') ? text === opening : text.endsWith(`</${root}>`);
  if (!isWhole) throw new UnreadableError('a whole caption document');
  const { start, duration, unitMs, escapedTwice } = FORMS[root];
  const segments: Segment[] = [];
  CUE.lastIndex = opening.length;
  for (let cue = CUE.exec(text); cue !== null; cue = CUE.exec(text)) {
    const [, name = '', attributes = ''] = cue;
    if (attributes.endsWith('/')) continue;
    const end = text.indexOf(`</${name}>`, CUE.lastIndex);
    if (end === -1) throw new UnreadableError('the end of a cue');
    const once = decodeEntities(checkLength(withoutTags(text.slice(CUE.lastIndex, end))));
    CUE.lastIndex = end;
    const words = plainText(escapedTwice ? decodeEntities(once) : once);
    if (words === '') continue;
    const startTime = asNumber(start.exec(attributes)?.[1]);
    if (startTime === null) throw new UnreadableError('the start of a cue');
    segments.push(segmentOf(words, startTime * unitMs, (asNumber(duration.exec(attributes)?.[1]) ?? 0) * unitMs));
  }
  return sortedByStart(segments);
}

function withoutTags(content: string): string {
  if (!content.includes('<')) return content;
  if (NOT_IN_CUE.test(content)) throw new UnreadableError('the end of a cue');
  return content.replace(LINE_BREAK, '\n').replace(TAG, '');
}

/**
 * Reads a caption document in the json3 form. Events without `segs` are window definitions. An appended event
 * (`aAppend: 1`, the line break of a roll-up) has only white space and is skipped like every other cue without text; one
 * with text is included. A missing time is 0, which the format may omit.
 *
 * @throws UnreadableError for a body that is empty, truncated or of another form
 */
export function readCaptionJson3(text: string): Segment[] {
  const events = at(parseJson(text), 'events');
  if (!Array.isArray(events)) throw new UnreadableError('a list of caption events');
  const segments: Segment[] = [];
  for (const event of asArray(events)) {
    if (!isObject(event)) throw new UnreadableError('a caption event');
    if (event['segs'] === undefined) continue;
    const words = readWords(event['segs']);
    if (words === '') continue;
    const start = event['tStartMs'] === undefined ? 0 : asNumber(event['tStartMs']);
    if (start === null) throw new UnreadableError('a number in tStartMs');
    segments.push(segmentOf(words, start, asNumber(event['dDurationMs']) ?? 0));
  }
  return sortedByStart(segments);
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
  return plainText(checkLength(words));
}

function checkLength(words: string): string {
  if (words.length > CUE_LENGTH_MAX) throw new UnreadableError(`a cue of at most ${CUE_LENGTH_MAX} characters`);
  return words;
}

/** A segment with times in seconds, rounded to milliseconds and at least 0. */
function segmentOf(text: string, startMs: number, durationMs: number): Segment {
  return { text, start: seconds(startMs), duration: seconds(durationMs) };
}

function seconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds)) / 1000;
}

function sortedByStart(segments: Segment[]): Segment[] {
  const sorted = segments.every((segment, index) => index === 0 || (segments[index - 1]?.start ?? 0) <= segment.start);
  return sorted ? segments : segments.sort((one, other) => one.start - other.start);
}
