import { nextTurn } from '../domain/waiting.js';
import type { Segment } from '../domain/transcript.js';
import { readTranscript } from '../transcripts/cache/transcript-text.js';
import { lineText, spaceBetween } from '../transcripts/formats/line-text.js';

/** Characters of one segment in an excerpt; only captions that are not divided into lines have more. */
const LINE_CHARACTERS_MAX = 300;

/** A place where a transcript contains the phrase. */
export interface Match {
  /** The start of the segment in which the phrase begins, in seconds. */
  start: number;
  /** That segment, the one before and the one after. */
  excerpt: string;
}

/**
 * Finds a phrase in the languages of a transcript, also across segments. Compares without case, the forms of Unicode and
 * runs of white space. Matches whose excerpts would share a segment with the last one are part of it.
 *
 * @param transcript the stored JSON
 * @param phrase as `normalized` returns it
 */
export async function searchTranscript(transcript: Buffer, phrase: string): Promise<Match[]> {
  const matches: Match[] = [];
  for (const segments of (await readTranscript(transcript)).values()) {
    await nextTurn();
    for (const match of matchesIn(segments, phrase)) matches.push(match);
  }
  return matches;
}

/** The form in which texts are compared. */
export function normalized(text: string): string {
  return lineText(text).normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim();
}

function* matchesIn(segments: readonly Segment[], phrase: string): Generator<Match> {
  const lines: { line: string; start: number; offset: number }[] = [];
  let whole = '';
  for (const { text, start } of segments) {
    const compared = normalized(text);
    if (compared === '') continue;
    const line = lineText(text);
    const last = lines.at(-1);
    if (last) whole += spaceBetween(last.line, line);
    lines.push({ line, start, offset: whole.length });
    whole += compared;
  }
  /** The segment of the last match, and the one from which an excerpt repeats nothing. */
  let [index, shownTo] = [0, 0];
  for (let from = 0; ;) {
    const at = whole.indexOf(phrase, from);
    if (at === -1) return;
    while ((lines[index + 1]?.offset ?? Infinity) <= at) index++;
    const excerpt = lines
      .slice(Math.max(shownTo, index - 1), index + 2)
      .map(({ line }) => excerptOf(line))
      .reduce((before, line) => `${before}${spaceBetween(before, line)}${line}`);
    yield { start: lines[index]?.start ?? 0, excerpt };
    shownTo = index + 2;
    const following = lines[shownTo];
    if (!following) return;
    from = Math.max(at + phrase.length, following.offset);
  }
}

function excerptOf(text: string): string {
  return text.length <= LINE_CHARACTERS_MAX ? text : `${text.slice(0, LINE_CHARACTERS_MAX).toWellFormed()}…`;
}
