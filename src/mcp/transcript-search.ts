import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Segment } from '../domain/transcript.js';
import { lineText, spaceBetween } from '../transcripts/formats/line-text.js';
import { readTranscript } from '../transcripts/cache/transcript-text.js';

/** Characters of one segment in an excerpt; only captions that are not divided into lines have more. */
const LINE_CHARACTERS_MAX = 300;

/** A place where a transcript contains the phrase. */
export interface Match {
  /** The start of the segment in which the phrase begins, in seconds. */
  start: number;
  /** That segment, the one before and the one after. */
  excerpt: string;
}

/** The first matches of a transcript, and the number of all. */
export interface Found {
  matches: Match[];
  total: number;
}

/**
 * Finds a phrase in the languages of a transcript, also across segments. Compares without case, the forms of Unicode and
 * runs of white space. Matches whose excerpts would share a segment with the last one are part of it. Other work runs after
 * each part of the text.
 *
 * @param transcript the stored JSON
 * @param phrase as `normalized` returns it
 * @param matchesMax the number of matches to return; the others are counted
 */
export async function searchTranscript(transcript: Buffer, phrase: string, matchesMax = Infinity): Promise<Found> {
  const languages = new Map<string, LanguageSearch>();
  for (const [language, segments] of readTranscript(transcript)) {
    const search = languages.get(language) ?? new LanguageSearch(phrase, matchesMax);
    languages.set(language, search);
    search.add(segments);
    await nextTurn();
  }
  const searches = [...languages.values()];
  return {
    matches: searches.flatMap((search) => search.matches()).slice(0, matchesMax),
    total: searches.reduce((sum, { total }) => sum + total, 0),
  };
}

/** The form in which texts are compared. */
export function normalized(text: string): string {
  return lineText(text).normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim();
}

/** The search in one language, which gets its segments part by part. */
class LanguageSearch {
  total = 0;
  private readonly texts: string[] = [];
  private readonly starts: number[] = [];
  /** Where each segment begins in the whole text. */
  private readonly offsets: number[] = [];
  /** The end of the whole text, in which a match can still begin, and where it begins. */
  private open = '';
  private openOffset = 0;
  /** The segment of the last match, and the one from which an excerpt repeats nothing. */
  private index = 0;
  private shownTo = 0;
  /** The segment of each match, and the first of its excerpt. */
  private readonly found: { index: number; from: number }[] = [];

  constructor(
    private readonly phrase: string,
    private readonly matchesMax: number,
  ) {}

  add(segments: readonly Segment[]): void {
    for (const { text, start } of segments) {
      const compared = normalized(text);
      if (compared === '') continue;
      const line = lineText(text);
      const last = this.texts.at(-1);
      if (last !== undefined) this.open += spaceBetween(last, line);
      this.offsets.push(this.openOffset + this.open.length);
      this.open += compared;
      this.texts.push(line);
      this.starts.push(start);
    }
    this.find();
  }

  /** The first matches, with excerpts. */
  matches(): Match[] {
    return this.found.map(({ index, from }) => ({
      start: this.starts[index] ?? 0,
      excerpt: this.texts
        .slice(from, index + 2)
        .map(excerptOf)
        .reduce((before, line) => `${before}${spaceBetween(before, line)}${line}`),
    }));
  }

  private find(): void {
    const { phrase, open } = this;
    let end = 0;
    for (let at = open.indexOf(phrase); at !== -1; at = open.indexOf(phrase, end)) {
      end = at + phrase.length;
      while ((this.offsets[this.index + 1] ?? Infinity) <= this.openOffset + at) this.index++;
      if (this.index < this.shownTo) continue;
      this.total++;
      if (this.found.length < this.matchesMax)
        this.found.push({ index: this.index, from: Math.max(this.shownTo, this.index - 1) });
      this.shownTo = this.index + 2;
    }
    const searched = Math.max(end, open.length - phrase.length + 1);
    this.openOffset += searched;
    this.open = open.slice(searched);
  }
}

function excerptOf(text: string): string {
  return text.length <= LINE_CHARACTERS_MAX ? text : `${text.slice(0, LINE_CHARACTERS_MAX).toWellFormed()}…`;
}
