import { nextTurn } from '../../domain/waiting.js';
import type { Segment, Transcript } from '../../domain/transcript.js';
import { spaceBetween } from '../formats/line-text.js';
import { vectorOf } from './words.js';

const PASSAGE_SECONDS = 30;
/** Of speech that is written without pauses, such as a manual caption that is a whole page. */
const PASSAGE_CHARACTERS = 1_500;
const FOLLOWING_CHARACTERS = 200;
/** Far below 50 ms of work. */
const PASSAGES_PER_TURN = 100;

/** A part of a text that is searched: some segments in a row. */
export interface Passage {
  language: string;
  /** Index of its first segment, and of the one after its last. */
  first: number;
  end: number;
  /** As the text of a `tsvector`. */
  words: string;
}

/** The passages of all languages of a text. */
export async function passagesOf(transcript: Transcript): Promise<Passage[]> {
  const passages: Passage[] = [];
  for (const [language, segments] of transcript)
    for (let first = 0; first < segments.length;) {
      if (passages.length % PASSAGES_PER_TURN === 0) await nextTurn();
      const end = endOfPassage(segments, first);
      const words = vectorOf(textOf(segments, first, end), following(segments, end));
      if (words !== '') passages.push({ language, first, end, words });
      first = end;
    }
  return passages;
}

export function textOf(segments: readonly Segment[], first: number, end: number): string {
  return segments
    .slice(first, end)
    .reduce((joined, { text }) => (joined === '' ? text : joined + spaceBetween(joined, text) + text), '');
}

function endOfPassage(segments: readonly Segment[], first: number): number {
  const startSeconds = segments[first]?.start ?? 0;
  let [end, characters] = [first, 0];
  for (; end < segments.length; end += 1) {
    const { start = 0, duration = 0, text = '' } = segments[end] ?? {};
    characters += text.length;
    const isFull = start + duration - startSeconds > PASSAGE_SECONDS || characters > PASSAGE_CHARACTERS;
    if (end > first && isFull) break;
  }
  return end;
}

function following(segments: readonly Segment[], from: number): string {
  let text = '';
  for (let index = from; index < segments.length && text.length < FOLLOWING_CHARACTERS; index += 1)
    text += `${segments[index]?.text ?? ''} `;
  return text.slice(0, FOLLOWING_CHARACTERS);
}
