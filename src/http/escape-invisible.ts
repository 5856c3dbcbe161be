/** Control, format and separator characters, which change or hide what a terminal displays; line feeds are excluded. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}]|[^\P{Cc}\n]/gu;

/**
 * Escapes invisible characters as JSON does (`\u202e`), so that a terminal displays a log line as it is. In a line of
 * JSON they occur only within strings, whose value does not change.
 */
export function escapeInvisible(line: string): string {
  return line.replace(INVISIBLE, (character) =>
    Array.from({ length: character.length }, (_, index) => {
      return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
    }).join(''),
  );
}
