import type { Segment } from '../../domain/transcript.js';
import { lineText } from './line-text.js';

/** How long a segment without a duration is shown, unless the next one starts earlier. */
const UNTIMED_MS = 2_000;

/** What is shown at a time. Cues do not overlap: each ends after its start, and no later than the next one starts. */
interface Cue {
  startMs: number;
  endMs: number;
  /** One line or several. */
  text: string;
}

/** A SubRip file: numbered cues, times with a comma. */
export function srt(segments: readonly Segment[]): string {
  let file = '';
  for (const [index, cue] of cuesOf(segments).entries())
    file += `${index === 0 ? '' : '\n'}${index + 1}\n${timesOf(cue, ',')}\n${srtText(cue.text)}\n`;
  return file;
}

/** A WebVTT file (W3C). */
export function webVtt(segments: readonly Segment[]): string {
  let file = 'WEBVTT\n';
  for (const cue of cuesOf(segments)) file += `\n${timesOf(cue, '.')}\n${vttText(cue.text)}\n`;
  return file;
}

/**
 * The cues of segments. Generated captions overlap, because a line stays on screen while the next one is spoken: the end of
 * a cue is moved to the start of the next. Segments with the same start become lines of one cue.
 */
function cuesOf(segments: readonly Segment[]): Cue[] {
  const cues: Cue[] = [];
  let cue: Cue | undefined;
  for (const { text, start, duration } of segments) {
    const line = lineText(text);
    if (line === '') continue;
    const startMs = Math.max(inMs(start), cue?.startMs ?? 0);
    const spokenMs = inMs(start + duration);
    const endMs = spokenMs > startMs ? spokenMs : startMs + UNTIMED_MS;
    if (cue?.startMs === startMs) {
      cue.text += `\n${line}`;
      cue.endMs = Math.max(cue.endMs, endMs);
      continue;
    }
    if (cue) cue.endMs = Math.min(cue.endMs, startMs);
    cue = { startMs, endMs, text: line };
    cues.push(cue);
  }
  return cues;
}

function inMs(seconds: number): number {
  return Math.max(0, Math.round(seconds * 1000));
}

function timesOf({ startMs, endMs }: Cue, separator: ',' | '.'): string {
  return `${timestamp(startMs, separator)} --> ${timestamp(endMs, separator)}`;
}

/** `00:01:02,345`; hours have more than two digits when they need them. */
function timestamp(ms: number, separator: ',' | '.'): string {
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${twoDigits(hours)}:${twoDigits(minutes)}:${twoDigits(seconds % 60)}${separator}${String(ms % 1000).padStart(3, '0')}`;
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}

/** What players read as markup in SubRip, which has no escapes: tags, overrides such as `{\an8}`, and the arrow of a time line. */
const SRT_MARKUP = /<(?=[/!?]?[a-z])|\{(?=[\\a-z])|--(?=>)/gi;
const WORD_JOINER = '\u2060';

/** An invisible word joiner within what would be markup, so that players show it as text. */
function srtText(text: string): string {
  return text.replace(SRT_MARKUP, (markup) => `${markup}${WORD_JOINER}`);
}

function vttText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
