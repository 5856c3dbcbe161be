import { type Cue, type Run, textOf, type Track } from '../catalogue/model.js';
import type { Json, JsonObject } from '../json.js';

/**
 * The format that the platform sends without a `fmt`. The text of a line is HTML, escaped, inside XML:
 * plain text is obtained by unescaping twice, removing `<i>` and `<font>` in between.
 */
export function legacyXml(track: Track): string {
  const lines = track.cues().map(textElement).join('');
  return `<?xml version="1.0" encoding="utf-8" ?><transcript>${lines}</transcript>`;
}

function textElement(cue: Cue): string {
  const duration = cue.durationMs === null ? '' : ` dur="${secondsOf(cue.durationMs)}"`;
  const html = cue.runs.map(htmlOf).join('');
  // The outer layer leaves `>` and quotes unescaped, which XML allows.
  const escaped = html.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text start="${secondsOf(cue.startMs)}"${duration}>${escaped}</text>`;
}

function htmlOf(run: Run): string {
  const text = escapeXml(run.text);
  const slanted = run.italic ? `<i>${text}</i>` : text;
  return run.colour ? `<font color="${run.colour}">${slanted}</font>` : slanted;
}

/** The format of the apps (`fmt=srv3`), which the platform sends for some tracks whatever is requested. */
export function srv3(track: Track): string {
  const lines = track.cues().map(({ startMs, durationMs, runs }) => {
    const words = runs.map(({ text, italic }) => `<s${italic ? ' p="1"' : ''}>${escapeXml(text)}</s>`);
    return `<p t="${startMs}"${durationMs === null ? '' : ` d="${durationMs}"`}>${words.join('')}</p>`;
  });
  const head = '<head><pen id="1" i="1"/><ws id="0"/><wp id="0"/></head>';
  return `<?xml version="1.0" encoding="utf-8" ?><timedtext format="3">${head}<body>${lines.join('\n')}</body></timedtext>`;
}

/**
 * The format of the platform's own web player (`fmt=json3`): plain text in `segs[].utf8`, styles by number. Recognised
 * speech is sent word by word, with an event per line break (`aAppend`) and one without text that opens the window.
 */
export function json3(track: Track): string {
  const time = (milliseconds: number): Json => (track.timesAsStrings ? String(milliseconds) : milliseconds);
  const events = track.generated ? rollUpEvents(track.cues()) : track.cues().map(subtitleEvent);
  return JSON.stringify({
    wireMagic: 'pb3',
    pens: [{}, { iAttr: 1 }],
    // A track without text has no events.
    ...(events.length > 0 && {
      events: events.map(({ tStartMs, dDurationMs, ...event }) => ({
        tStartMs: time(tStartMs),
        ...(dDurationMs !== null && { dDurationMs: time(dDurationMs) }),
        ...event,
      })),
    }),
  });
}

interface CaptionEvent {
  readonly tStartMs: number;
  readonly dDurationMs: number | null;
  readonly [key: string]: Json;
}

function subtitleEvent(cue: Cue): CaptionEvent {
  const empty = textOf(cue) === '';
  return { tStartMs: cue.startMs, dDurationMs: cue.durationMs, ...(!empty && { segs: cue.runs.map(segment) }) };
}

function segment(run: Run): JsonObject {
  return { utf8: run.text, ...(run.italic && { pPenId: 1 }) };
}

function rollUpEvents(cues: readonly Cue[]): CaptionEvent[] {
  const last = cues.at(-1);
  const endMs = last ? last.startMs + (last.durationMs ?? 0) : 0;
  const opening = { tStartMs: 0, dDurationMs: endMs, id: 1, wpWinPosId: 1, wsWinStyleId: 1 };
  return [opening, ...cues.flatMap((cue, index) => rollUpLine(cue, cues[index + 1]))];
}

function rollUpLine(cue: Cue, next: Cue | undefined): CaptionEvent[] {
  const durationMs = cue.durationMs ?? 0;
  const segs = wordsOf(textOf(cue), durationMs).map(({ text, offsetMs }) => ({
    utf8: text,
    ...(offsetMs > 0 && { tOffsetMs: offsetMs }),
    acAsrConf: 0,
  }));
  const line = { tStartMs: cue.startMs, dDurationMs: cue.durationMs, wWinId: 1, segs };
  const breakAtMs = rollsUpAtMs(cue.startMs, durationMs, next?.startMs);
  const lineBreak = { dDurationMs: Math.max(0, cue.startMs + durationMs - breakAtMs), wWinId: 1, aAppend: 1 };
  return [line, { tStartMs: breakAtMs, ...lineBreak, segs: [{ utf8: '\n' }] }];
}

/** A word of recognised speech, with the space before it, and its offset within the line. */
interface Word {
  text: string;
  offsetMs: number;
}

/** Distributes the words of a line over its duration. */
function wordsOf(line: string, durationMs: number): Word[] {
  const words = line.split(/(?= )/);
  const eachMs = Math.floor(durationMs / (words.length + 1));
  return words.map((text, index) => ({ text, offsetMs: index * eachMs }));
}

/** When the next line rolls in: just before it starts. */
function rollsUpAtMs(startMs: number, durationMs: number, nextStartMs: number | undefined): number {
  return nextStartMs === undefined ? startMs + durationMs : nextStartMs - 10;
}

/** Escapes a text for XML, apostrophes and quotes as the platform does it (`&#39;`, `&quot;`). */
export function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** Milliseconds as the seconds of an XML attribute: `0`, `1.54`, `5.7`. */
function secondsOf(milliseconds: number): string {
  return String(milliseconds / 1_000);
}
