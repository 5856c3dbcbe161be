import { escapeXml } from './caption-formats.js';

/** Long enough to block a non-linear reader for seconds; below the size limit even when fully escaped. */
const CUE_LENGTH = 50_000;
/** Longer than any real cue; a reader that accepts it has no limit. */
const ENDLESS_CUE_LENGTH = 600_000;

/** Captions that an uploader could write to exhaust a reader: unterminated tags, entities and times. */
const CUES: readonly string[] = [
  filled('<i a=', ' '),
  filled('<font', ' '),
  filled('', '<i a='),
  filled('', '<'),
  filled('', '&amp;#'),
  filled('', '<c.a'),
  filled('', '<br '),
  `${filled('', ' \n\u00a0')}x`,
  'a'.repeat(ENDLESS_CUE_LENGTH),
];

const written = new Map<string, string>();

/** A well-formed caption document of 1 MB in the requested format (`json3`, or else legacy XML). */
export function hostileCaptions(format: string): string {
  const known = written.get(format);
  if (known !== undefined) return known;
  const document = write(format);
  written.set(format, document);
  return document;
}

function write(format: string): string {
  if (format === 'json3') {
    return JSON.stringify({ events: CUES.map((utf8, index) => ({ tStartMs: index, segs: [{ utf8 }] })) });
  }
  const texts = CUES.map((cue, index) => `<text start="${index}" dur="1">${escapeXml(cue)}</text>`);
  return `<transcript>${texts.join('')}</transcript>`;
}

function filled(beginning: string, piece: string): string {
  return beginning + piece.repeat(Math.ceil(CUE_LENGTH / piece.length));
}
