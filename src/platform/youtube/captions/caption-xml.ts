import type { Segment } from '../../../domain/transcript.js';
import { asNumber, UnreadableError } from '../response-parsing.js';
import { checkLength, segmentOf, sortedByStart } from './caption-formats.js';
import { checkCueLength, decodeEntities, plainText } from './plain-text.js';

/** A cue in the layout that nearly all documents have [recorded]: no markup inside, and its attributes in this order. */
const PLAIN_CUE = /<text start="(\d{1,15}(?:\.\d{1,15})?)"(?: dur="(\d{1,15}(?:\.\d{1,15})?)")?>([^<]*)<\/text>/y;

/**
 * A tag, or a declaration, comment or instruction, which have no name. A `>` in a quoted value does not end a tag. A CDATA
 * section does not match: skipping it like another declaration would lose its text.
 */
const TAG =
  /<(?:!--[^]*?-->|\?[^]*?\?>|!(?!\[CDATA\[|--)[^>]*>|(\/?)([A-Za-z_][\w:.-]*)(?![\w:.-])((?:[^"'>/]|"[^"]*"|'[^']*'|\/(?!>))*)(\/?)>)/y;

/** The value of each attribute that is read; the group of the quote that encloses it. */
const VALUES = Object.fromEntries(
  ['start', 'dur', 't', 'd'].map((name) => [
    name,
    new RegExp(`(?<!\\S)${name}\\s{0,9}=\\s{0,9}(?:"([^"]*)"|'([^']*)')`),
  ]),
);

/** The two forms of a document. Texts of the first are escaped twice, and its times are in seconds. */
const FORMS = {
  transcript: { cues: ['text'], start: 'start', duration: 'dur', unitMs: 1000, escapedTimes: 2 },
  timedtext: { cues: ['text', 'p'], start: 't', duration: 'd', unitMs: 1, escapedTimes: 1 },
};

interface OpenCue {
  name: string;
  attributes: string;
  words: string;
}

/**
 * Reads a caption document in any of its XML forms: legacy (`<transcript><text start dur>`, seconds, entities escaped
 * twice) and srv3 or srv2 (`<timedtext>` with `<p t d>` or `<text t d>`, milliseconds). A missing or invalid duration is 0.
 * Cues without text are skipped, so `[]` is a well-formed document without text.
 *
 * Most cues are read by one expression: texts of a whole call are read one after another, and reading each tag by itself
 * takes twice as long.
 *
 * @throws UnreadableError for a body that is empty, truncated or of another form
 */
export function readCaptionXml(text: string): Segment[] {
  checkLength(text);
  const segments: Segment[] = [];
  const add = (form: (typeof FORMS)['transcript'], escaped: string, start: number | null, duration: number | null) => {
    let decoded = checkCueLength(escaped);
    for (let times = 0; times < form.escapedTimes; times += 1) decoded = decodeEntities(decoded);
    const words = plainText(decoded);
    if (words === '') return;
    if (start === null) throw new UnreadableError('the start of a cue');
    segments.push(segmentOf(words, start * form.unitMs, (duration ?? 0) * form.unitMs));
  };
  let root: keyof typeof FORMS | undefined;
  let ended = false;
  let cue: OpenCue | undefined;
  let position = 0;
  while (position < text.length) {
    if (root === 'transcript' && !ended && !cue) {
      PLAIN_CUE.lastIndex = position;
      const plain = PLAIN_CUE.exec(text);
      if (plain) {
        position = PLAIN_CUE.lastIndex;
        const [, start, duration, words = ''] = plain;
        add(FORMS.transcript, words, Number(start), duration === undefined ? null : Number(duration));
        continue;
      }
    }
    const next = text.indexOf('<', position);
    const between = text.slice(position, next === -1 ? text.length : next);
    if (cue) cue.words += between;
    else if ((root === undefined || ended) && between.trim() !== '') {
      throw new UnreadableError('no text outside the caption document');
    }
    if (next === -1) break;
    TAG.lastIndex = next;
    const tag = TAG.exec(text);
    if (!tag) throw new UnreadableError('whole tags');
    position = TAG.lastIndex;
    const [, slash, name, attributes = '', empty] = tag;
    if (name === undefined) continue;
    if (ended) throw new UnreadableError('one caption document');
    const closing = slash === '/';
    if (root === undefined) {
      if (closing || (name !== 'transcript' && name !== 'timedtext')) throw new UnreadableError('a caption document');
      root = name;
      ended = empty === '/';
      continue;
    }
    const form = FORMS[root];
    const isCue = form.cues.includes(name);
    if (cue) {
      if (name === 'br') cue.words += '\n';
      if (closing && name === cue.name) {
        add(form, cue.words, numberIn(cue.attributes, form.start), numberIn(cue.attributes, form.duration));
        cue = undefined;
      } else if (name === root || isCue) throw new UnreadableError('the end of a cue');
    } else if (closing) ended = name === root;
    else if (isCue && empty !== '/') cue = { name, attributes, words: '' };
  }
  if (!ended) throw new UnreadableError('a whole caption document');
  return sortedByStart(segments);
}

function numberIn(attributes: string, name: string): number | null {
  const value = VALUES[name]?.exec(attributes);
  return asNumber(value?.[1] ?? value?.[2]);
}
