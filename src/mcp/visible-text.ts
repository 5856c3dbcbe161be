const INVISIBLE = /[\p{DI}\ufff9-\ufffb]+/gu;
/** Scripts whose letters U+200C and U+200D join or part, and emoji, of which U+200D makes one. */
const JOINED = new RegExp(
  `[${['Arab', 'Syrc', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya', 'Taml', 'Telu', 'Knda', 'Mlym', 'Sinh']
    .map((script) => `\\p{scx=${script}}`)
    .join('')}\\p{ExtPict}\\p{EMod}\\u20e3]`,
  'u',
);
/** A joiner, or the mark of an emoji, which another one can follow by a joiner. */
const NEEDED = /^(?:[\u200c\u200d]|\ufe0f\u200d?)$/;

/**
 * The text as a person sees it: U+FFFD stands for what is invisible (zero-width and direction characters, tags, variation
 * selectors), in which a title can hide instructions to a model. It is not left out, because what it parts can be markup together.
 */
export function visibleText(text: string): string {
  return text.replace(INVISIBLE, (run: string, at: number) => {
    const isNeeded = NEEDED.test(run) && JOINED.test(text.slice(Math.max(0, at - 2), at + run.length + 2));
    return isNeeded ? run : '\ufffd';
  });
}
