import type { Segment } from '../domain/transcript.js';
import { spaceBetween } from '../transcripts/formats/line-text.js';
import { textOf } from '../transcripts/kept/passages.js';
import { matchesIn, type Place, type SearchQuery } from './search-query.js';

/** Of the passages before and after, up to a space. */
const CONTEXT_CHARACTERS = 120;
const CONTEXT_SEGMENTS = 20;
/** Of a passage, which is longer when one segment is a whole page. */
const TEXT_CHARACTERS_MAX = 3_000;

interface Excerpt {
  /** When the passage starts, in seconds. */
  start: number;
  text: string;
  matches: Place[];
  /** When the segment of its first match starts, in seconds. */
  firstMatch: number;
}

/** A passage with the words around it, and where it has what was searched. */
export function excerptOf(
  segments: readonly Segment[],
  { first_segment: first, end_segment: end }: { first_segment: number; end_segment: number },
  query: SearchQuery,
): Excerpt {
  const own = textOf(segments, first, end).slice(0, TEXT_CHARACTERS_MAX);
  const before = lastWords(textOf(segments, Math.max(0, first - CONTEXT_SEGMENTS), first));
  const after = firstWords(textOf(segments, end, end + CONTEXT_SEGMENTS));
  const lead = before === '' ? '' : before + spaceBetween(before, own);
  const text = `${lead}${own}${after === '' ? '' : spaceBetween(own, after) + after}`;
  const matches = matchesIn(text, query);
  const start = segments[first]?.start ?? 0;
  const at = matches.find(({ from }) => from >= lead.length)?.from ?? lead.length;
  let [length, firstMatch, joined] = [0, start, ''];
  for (const segment of segments.slice(first, end)) {
    length += joined === '' ? 0 : spaceBetween(joined, segment.text).length;
    if (length > at - lead.length) break;
    firstMatch = segment.start;
    length += segment.text.length;
    joined = segment.text;
  }
  return { start, text, matches, firstMatch };
}

function lastWords(text: string): string {
  const part = text.slice(-CONTEXT_CHARACTERS);
  return part.length === text.length ? part : part.slice(part.indexOf(' ') + 1).toWellFormed();
}

function firstWords(text: string): string {
  const part = text.slice(0, CONTEXT_CHARACTERS);
  const lastSpace = part.lastIndexOf(' ');
  return part.length === text.length ? part : part.slice(0, lastSpace === -1 ? undefined : lastSpace).toWellFormed();
}
