import { type Cue, type Run, textOf, type Track } from '../catalogue/model.js';
import { escapeXml } from './escape.js';
import { rollsUpAtMs, wordsOf } from './words.js';

/** The format requested by the ANDROID client's URLs (`fmt=srv3`): times in milliseconds, text escaped once. */
export function srv3(track: Track): string {
  const cues = track.cues();
  const head =
    '<head><pen id="0"/><pen id="1" i="1"/><ws id="0"/><ws id="1" mh="2" ju="0" sd="3"/>' +
    '<wp id="0"/><wp id="1" ap="6" ah="20" av="100" rc="2" cc="40"/></head>';
  const body = track.generated
    ? `<w t="0" id="1" wp="1" ws="1"/>${cues.map((cue, index) => rollUpLine(cue, cues[index + 1])).join('')}`
    : cues.map(paragraph).join('');
  return `<?xml version="1.0" encoding="utf-8" ?><timedtext format="3">\n${head}\n<body>${body}</body>\n</timedtext>`;
}

function paragraph(cue: Cue): string {
  const duration = cue.durationMs === null ? '' : ` d="${cue.durationMs}"`;
  return `<p t="${cue.startMs}"${duration}>${cue.runs.map(spanOf).join('')}</p>\n`;
}

function spanOf(run: Run): string {
  return run.italic ? `<s p="1">${escapeXml(run.text)}</s>` : escapeXml(run.text);
}

function rollUpLine(cue: Cue, next: Cue | undefined): string {
  const durationMs = cue.durationMs ?? 0;
  const words = wordsOf(textOf(cue), durationMs)
    .map(({ text, offsetMs }) => `<s${offsetMs > 0 ? ` t="${offsetMs}"` : ''} ac="0">${escapeXml(text)}</s>`)
    .join('');
  const breakAtMs = rollsUpAtMs(cue.startMs, durationMs, next?.startMs);
  const restMs = Math.max(0, cue.startMs + durationMs - breakAtMs);
  return `<p t="${cue.startMs}" d="${durationMs}" w="1">${words}</p>\n<p t="${breakAtMs}" d="${restMs}" w="1" a="1">\n</p>\n`;
}
