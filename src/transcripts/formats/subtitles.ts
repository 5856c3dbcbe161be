import type { Segment } from '../../domain/transcript.js';
import { lineText } from './line-text.js';

/** How long a segment without a duration is shown, unless the next one starts earlier. */
const UNTIMED_MS = 2_000;

/** What is shown at a time. Cues do not overlap: each ends after its start, and no later than the next one starts. */
interface Cue {
  startMs: number;
  endMs: number;
  lines: string[];
}

/** A SubRip file in pieces: numbered cues, times with a comma. */
export function* srt(segments: Iterable<Segment>): Generator<string, void, undefined> {
  let number = 0;
  for (const cue of cues(segments))
    yield cue
      ? `${number === 0 ? '' : '\n'}${++number}\n${timesOf(cue, ',')}\n${cue.lines.map(srtText).join('\n')}\n`
      : '';
}

/** A WebVTT file (W3C) in pieces. */
export function* webVtt(segments: Iterable<Segment>): Generator<string, void, undefined> {
  yield 'WEBVTT\n';
  for (const cue of cues(segments)) yield cue ? `\n${timesOf(cue, '.')}\n${cue.lines.map(vttText).join('\n')}\n` : '';
}

/**
 * The cues of segments. Generated captions overlap, because a line stays on screen while the next one is spoken: the end of
 * a cue is moved to the start of the next. Segments with the same start become lines of one cue. Each
 * segment yields undefined as well, as a step of the work.
 */
function* cues(segments: Iterable<Segment>): Generator<Cue | undefined> {
  let cue: Cue | undefined;
  for (const { text, start, duration } of segments) {
    const line = lineText(text);
    yield undefined;
    if (line === '') continue;
    const startMs = Math.max(inMs(start), cue?.startMs ?? 0);
    const spokenMs = inMs(start + duration);
    const endMs = spokenMs > startMs ? spokenMs : startMs + UNTIMED_MS;
    if (cue?.startMs === startMs) {
      cue.lines.push(line);
      cue.endMs = Math.max(cue.endMs, endMs);
      continue;
    }
    if (cue) yield { ...cue, endMs: Math.min(cue.endMs, startMs) };
    cue = { startMs, endMs, lines: [line] };
  }
  if (cue) yield cue;
}

function inMs(seconds: number): number {
  return Math.max(0, Math.round(seconds * 1000));
}

function timesOf({ startMs, endMs }: Cue, separator: ',' | '.'): string {
  return `${timestamp(startMs, separator)} --> ${timestamp(endMs, separator)}`;
}

/** `00:01:02,345`; hours have more than two digits when they need them. */
function timestamp(ms: number, separator: ',' | '.'): string {
  const [hours, minutes, seconds] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map((part) =>
    String(Math.floor(part)).padStart(2, '0'),
  );
  return `${hours}:${minutes}:${seconds}${separator}${String(ms % 1000).padStart(3, '0')}`;
}

/** What players read as markup in SubRip, which has no escapes: tags, overrides such as `{\an8}`, and the arrow of a time line. */
const SRT_MARKUP = /<(?=[/!?]?[a-z])|\{(?=[\\a-z])|--(?=>)/gi;
const WORD_JOINER = '\u2060';

/** An invisible word joiner within what would be markup, so that players show it as text. */
function srtText(line: string): string {
  return line.replace(SRT_MARKUP, (markup) => `${markup}${WORD_JOINER}`);
}

function vttText(line: string): string {
  return line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
