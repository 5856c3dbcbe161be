import { escapeXml } from './escape.js';

/** Long enough to stop a reader for seconds whose time is not linear in it; below its bound even when all is escaped. */
const CUE_LENGTH = 50_000;
/** Longer than any cue of a video; a reader that accepts it has no bound. */
const ENDLESS_CUE_LENGTH = 600_000;

/** What an uploader can write into a caption to keep its readers busy: tags, entities and times without an end. */
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

/** A well-formed caption document in the format that is asked for (`json3`, `srv3`, or else legacy XML), of 1 MB. */
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
  if (format === 'srv3') {
    const paragraphs = CUES.map((cue, index) => `<p t="${index}">${escapeXml(cue)}</p>`);
    return `<timedtext format="3"><body>${paragraphs.join('')}</body></timedtext>`;
  }
  const texts = CUES.map((cue, index) => `<text start="${index}" dur="1">${escapeXml(cue)}</text>`);
  return `<transcript>${texts.join('')}</transcript>`;
}

function filled(beginning: string, piece: string): string {
  return beginning + piece.repeat(Math.ceil(CUE_LENGTH / piece.length));
}
