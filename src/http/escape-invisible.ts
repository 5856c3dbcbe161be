/** Characters that steer a terminal, break a line, turn the direction of a text or show nothing; the end of a line is none. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}]|[^\P{Cc}\n]/gu;

/**
 * Writes the invisible characters of a line as JSON does its control characters, so that what a log shows is what it says.
 * In a line of JSON they can only stand in texts, where the meaning stays the same.
 */
export function escapeInvisible(line: string): string {
  return line.replace(INVISIBLE, (character) =>
    Array.from({ length: character.length }, (_, index) => {
      return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
    }).join(''),
  );
}
