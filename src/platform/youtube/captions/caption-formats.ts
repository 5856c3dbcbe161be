import type { Segment } from '../../../domain/transcript.js';
import { asArray, asNumber, at, isObject, UnreadableError } from '../response-parsing.js';
import { checkCueLength, decodeEntities, plainText, readPlainCues } from './plain-text.js';
import { attributeOf, nextTag, type XmlTag } from './xml-tags.js';

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
 * Reads a caption document in any of its XML forms: legacy (`<transcript><text start dur>`, seconds, entities escaped
 * twice) and srv3 or srv2 (`<timedtext>` with `<p t d>` or `<text t d>`, milliseconds). A missing or invalid duration is 0.
 * Cues without text are skipped, so `[]` is a well-formed document without text.
 *
 * @throws UnreadableError for a body that is empty, truncated or of another form
 */
export function readCaptionXml(text: string): Segment[] {
  checkLength(text);
  return readPlainCues(text) ?? readCaptionDocument(text);
}

/** Reads any XML form in any layout, at twice the cost of `readPlainCues`. @throws UnreadableError */
export function readCaptionDocument(text: string): Segment[] {
  checkLength(text);
  const document = new CaptionDocument();
  let position = 0;
  for (let tag = nextTag(text, 0); tag !== null; tag = nextTag(text, position)) {
    document.addText(text, position, tag.start);
    document.addTag(tag);
    position = tag.end;
  }
  document.addText(text, position, text.length);
  return document.segments();
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

function checkLength(text: string): void {
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

type Root = 'transcript' | 'timedtext';

/** Receives the tags and texts of an XML caption document in order and collects its cues. */
class CaptionDocument {
  private readonly cues: Segment[] = [];
  private root: Root | undefined;
  private ended = false;
  private cue: XmlTag | undefined;
  private words = '';

  addText(xml: string, from: number, to: number): void {
    if (from === to) return;
    if (this.cue !== undefined) this.words += xml.slice(from, to);
    else if ((this.root === undefined || this.ended) && xml.slice(from, to).trim() !== '') {
      throw new UnreadableError('no text outside the caption document');
    }
  }

  addTag(tag: XmlTag): void {
    if (tag.kind === 'other') return;
    if (this.ended) throw new UnreadableError('one caption document');
    if (this.root === undefined) this.open(tag);
    else if (this.cue !== undefined) this.insideCue(tag, this.cue);
    else if (tag.kind === 'close') this.ended = tag.name === this.root;
    else if (tag.kind === 'open' && this.isCue(tag.name)) {
      this.cue = tag;
      this.words = '';
    }
  }

  segments(): Segment[] {
    if (!this.ended) throw new UnreadableError('a whole caption document');
    return sortedByStart(this.cues);
  }

  private open(tag: XmlTag): void {
    if (tag.kind === 'close' || (tag.name !== 'transcript' && tag.name !== 'timedtext')) {
      throw new UnreadableError('a caption document');
    }
    this.root = tag.name;
    this.ended = tag.kind === 'empty';
  }

  private insideCue(tag: XmlTag, cue: XmlTag): void {
    if (tag.name === 'br') this.words += '\n';
    if (tag.kind === 'close' && tag.name === cue.name) this.close(cue);
    else if (tag.name === this.root || this.isCue(tag.name)) throw new UnreadableError('the end of a cue');
  }

  private isCue(name: string): boolean {
    return name === 'text' || (name === 'p' && this.root === 'timedtext');
  }

  private close(cue: XmlTag): void {
    this.cue = undefined;
    const legacy = this.root === 'transcript';
    const decoded = decodeEntities(checkCueLength(this.words));
    const words = plainText(legacy ? decodeEntities(decoded) : decoded);
    if (words === '') return;
    const unit = legacy ? 1000 : 1;
    const start = asNumber(attributeOf(cue.attributes, legacy ? 'start' : 't'));
    if (start === null) throw new UnreadableError('the start of a cue');
    const duration = asNumber(attributeOf(cue.attributes, legacy ? 'dur' : 'd'));
    this.cues.push(segmentOf(words, start * unit, (duration ?? 0) * unit));
  }
}

/** A segment with times in seconds, rounded to milliseconds and at least 0. */
function segmentOf(text: string, startMs: number, durationMs: number | null): Segment {
  return { text, start: seconds(startMs), duration: seconds(durationMs ?? 0) };
}

function seconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds)) / 1000;
}

function sortedByStart(segments: Segment[]): Segment[] {
  const sorted = segments.every((segment, index) => index === 0 || (segments[index - 1]?.start ?? 0) <= segment.start);
  return sorted ? segments : segments.sort((one, other) => one.start - other.start);
}
