import { VideoFailedError } from '../domain/errors.js';
import { failureLine, videoHead, videoText } from '../transcripts/formats/markdown.js';
import { inflate, readTranscript } from '../transcripts/cache/transcript-text.js';
import type { Entry } from '../transcripts/transcript-events.js';
import { staleCursor } from './cursor.js';

/** A section is not begun with less room for its text than this. */
const TEXT_CHARACTERS_MIN = 200;
/** Begins with the link to its second. */
const PARAGRAPH = /^\[/m;

/** The part of a video's text that was sent. */
export interface Sent {
  offset: number;
  /** The checksum of the transcript; null before the video has been read. */
  crc32: number | null;
}

/** How the texts of a page are written. */
export interface PageForm {
  /** Without what follows the text of the page. */
  maxChars: number;
  headingLevel: 1 | 2;
  /** The languages that the caller asked for. */
  languages: readonly string[];
  /** Seconds; the end is null for the end of the video. */
  range: readonly [number, number | null];
}

/** One page of Markdown: as many entries as fit, the last of them perhaps in part. */
export class TextPage {
  text = '';
  /** The video with which the next page begins; undefined when everything fits. */
  next: (Sent & { videoId: string }) | undefined;
  /** @param sent the part of the first entry that earlier pages have */
  constructor(
    private readonly form: PageForm,
    private sent: Sent = { offset: 0, crc32: null },
  ) {}

  /** Adds a head that counts for the length of the page. */
  head(text: string): void {
    this.text += text;
  }

  /**
   * @throws InvalidRequestError when the transcript is not the one that earlier pages have a part of
   * @throws VideoFailedError when earlier pages have a part of the video and it fails now, so that the cursor can be retried
   */
  async add(entry: Entry): Promise<void> {
    const { sent } = this;
    this.sent = { offset: 0, crc32: null };
    if (this.next) return;
    if (!entry.ok) {
      if (sent.offset > 0) throw new VideoFailedError(entry.error);
      this.addWhole(entry.videoId, failureLine(entry));
      return;
    }
    const { crc32 } = entry.transcript;
    if (sent.crc32 !== null && sent.crc32 !== crc32) throw staleCursor();
    const isContinued = sent.offset > 0;
    const before = isContinued ? '… ' : `${this.separator}${videoHead(entry, this.form.headingLevel)}`;
    const room = this.form.maxChars - this.text.length - before.length;
    if (room < TEXT_CHARACTERS_MIN && this.text !== '') {
      this.next = { videoId: entry.videoId, offset: sent.offset, crc32: isContinued ? crc32 : null };
      return;
    }
    const rest = await this.textFrom(entry, sent.offset, Math.max(room, TEXT_CHARACTERS_MIN));
    this.text += before + (isContinued ? rest.text.trimStart() : rest.text);
    if (rest.isCut) this.next = { videoId: entry.videoId, offset: sent.offset + rest.text.length, crc32 };
  }

  private get separator(): string {
    return this.text === '' ? '' : '\n';
  }

  private addWhole(videoId: string, line: string): void {
    const text = `${this.separator}${line}`;
    if (this.text !== '' && this.text.length + text.length > this.form.maxChars)
      this.next = { videoId, offset: 0, crc32: null };
    else this.text += text.slice(0, this.form.maxChars);
  }

  /** The text of a video from an offset on, cut at the end of a paragraph or a word. Nothing behind the cut is written. */
  private async textFrom(
    { videoId, transcript }: Extract<Entry, { ok: true }>,
    offset: number,
    room: number,
  ): Promise<{ text: string; isCut: boolean }> {
    const { headingLevel, languages, range } = this.form;
    const [from, to] = range;
    const level = languages.length > 1 ? (headingLevel === 1 ? 2 : 3) : undefined;
    const text = videoText(videoId, readTranscript(await inflate(transcript)), level, range);
    const hasRange = from > 0 || to !== null;
    if (hasRange && !PARAGRAPH.test(text))
      return { text: '\nNothing is said in this part of the video.\n', isCut: false };
    const rest = text.slice(offset);
    if (rest.length <= room) return { text: rest, isCut: false };
    return { text: rest.slice(0, cutBefore(rest, room)), isCut: true };
  }
}

/** The last end of a paragraph, else of a word, else of a character at or before a length. */
export function cutBefore(text: string, length: number): number {
  const paragraph = text.lastIndexOf('\n\n', length - 1);
  if (paragraph > 0) return paragraph + 1;
  const word = text.lastIndexOf(' ', length - 1);
  // Not the space after the link to the second, which would leave an empty paragraph.
  if (word > length / 2) return word;
  const before = text.slice(0, length);
  const isWithinPair = /[\ud800-\udbff]$/.test(before);
  // An odd number of backslashes ends with one that escapes the next character.
  let backslashes = 0;
  while (before.charAt(length - 1 - backslashes) === '\\') backslashes++;
  const isWithinEscape = backslashes % 2 === 1;
  return isWithinPair || isWithinEscape ? length - 1 : length;
}
