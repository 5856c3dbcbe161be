import { type Cue, type Run, type Track } from '../catalogue/model.js';
import { escapeXml, secondsOf } from './escape.js';

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
