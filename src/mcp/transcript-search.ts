import { setImmediate as nextTurn } from 'node:timers/promises';
import { lineText } from '../transcripts/formats/line-text.js';
import { storedParts } from '../transcripts/formats/stored-segments.js';

/** Characters of one segment in an excerpt; only captions that are not divided into lines have more. */
const LINE_CHARACTERS_MAX = 300;

/** A place where a transcript contains the phrase. */
export interface Match {
  /** The start of the segment in which the phrase begins, in seconds. */
  start: number;
  /** That segment, the one before and the one after. */
  excerpt: string;
}

/** The segments of one language, and all of them as one searched text. */
interface Lines {
  texts: string[];
  starts: number[];
  /** Where each segment begins in `searched`. */
  offsets: number[];
  searched: string;
}

/**
 * Finds a phrase in the languages of a transcript, also across segments. Compares without case, the forms of Unicode and
 * runs of white space. Matches whose excerpts would share a segment with the last one are part of it.
 *
 * @param transcript the stored JSON
 * @param phrase as `normalized` returns it
 */
export async function searchTranscript(transcript: Buffer, phrase: string): Promise<Match[]> {
  const languages = new Map<string, Lines>();
  for (const { language, segments } of storedParts(transcript)) {
    const lines = languages.get(language) ?? { texts: [], starts: [], offsets: [], searched: '' };
    languages.set(language, lines);
    for (const { text, start } of segments) {
      lines.texts.push(lineText(text));
      lines.starts.push(start);
      lines.offsets.push(lines.searched.length);
      lines.searched += `${normalized(text)} `;
    }
    await nextTurn();
  }
  return [...languages.values()].flatMap((lines) => [...matchesIn(lines, phrase)]);
}

/** The form in which texts are compared. */
export function normalized(text: string): string {
  return lineText(text).normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim();
}

function* matchesIn({ texts, starts, offsets, searched }: Lines, phrase: string): Generator<Match> {
  let index = 0;
  let shownTo = 0;
  for (let at = searched.indexOf(phrase); at !== -1; at = searched.indexOf(phrase, at + phrase.length)) {
    while ((offsets[index + 1] ?? Infinity) <= at) index++;
    if (index < shownTo) continue;
    const excerpt = texts.slice(Math.max(shownTo, index - 1), index + 2).map(excerptOf);
    shownTo = index + 2;
    yield { start: starts[index] ?? 0, excerpt: excerpt.join(' ') };
  }
}

function excerptOf(text: string): string {
  return text.length <= LINE_CHARACTERS_MAX ? text : `${text.slice(0, LINE_CHARACTERS_MAX).toWellFormed()}…`;
}
