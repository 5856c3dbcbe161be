/** A chapter of a video; `start` is seconds. */
export interface Chapter {
  title: string;
  start: number;
}

/** The rule of the platform (its help pages, 2026): fewer are no chapters. */
const CHAPTERS_MIN = 3;

/** A time stamp before a title, such as `1:02:03 - Varnish`, `[0:00] Intro` or `• (02:15) The keel`. */
const LEADING = /^[^\p{L}\p{N}]{0,8}(?:(\d{1,2}):)?(\d{1,3}):([0-5]\d)(?!\d|:\d)[\])]?(.*)$/u;
/** A title before a time stamp. */
const TRAILING = /^(.*\s[[(]?)(?:(\d{1,2}):)?(\d{1,3}):([0-5]\d)[\])]?\s*$/u;
/** No title has as many. */
const LINE_CHARACTERS_MAX = 500;
const SEPARATORS_BEFORE = /^[\s\p{Pd}:|.•>→]+/u;
const SEPARATOR_AFTER = /[\s\p{Pd}:|•([]/u;

/**
 * The chapters of a video by the time stamps of its description, a line each: at least three, ascending, from 0:00. Empty
 * when these rules are not met.
 *
 * @param durationSeconds of the video, if it is known
 */
export function chaptersOf(description: string, durationSeconds: number | null): Chapter[] {
  const chapters = description.split(/\r?\n/).flatMap(chapterOf);
  const ends = [...chapters.slice(1).map(({ start }) => start), durationSeconds ?? Number.POSITIVE_INFINITY];
  const isWhole = chapters[0]?.start === 0 && chapters.length >= CHAPTERS_MIN;
  return isWhole && chapters.every(({ start }, index) => (ends[index] ?? 0) > start) ? chapters : [];
}

function chapterOf(line: string): Chapter[] {
  const text = line.slice(0, LINE_CHARACTERS_MAX).trim();
  const leading = LEADING.exec(text);
  const [, hours, minutes, seconds, title] = leading ?? [];
  if (leading) return chapter(title, hours, minutes, seconds);
  const [, before, ...times] = TRAILING.exec(text) ?? [];
  return chapter(before, ...times);
}

function chapter(text = '', hours = '0', minutes = '', seconds = ''): Chapter[] {
  const title = withoutSeparators(text);
  if (minutes === '' || title === '') return [];
  return [{ title, start: Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) }];
}

/** A pattern for the end of a text would be tried at each of its characters. */
function withoutSeparators(text: string): string {
  let end = text.length;
  while (end > 0 && SEPARATOR_AFTER.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end).replace(SEPARATORS_BEFORE, '');
}
