/** Of many unknown names the first ones show the mistake. A body can have tens of thousands, each of which takes time. */
const UNKNOWN_SHOWN_MAX = 20;

/** A shorter part of a name would mean too many parameters. */
const PREFIX_CHARACTERS_MIN = 3;
/** Of so many letters of a misspelled name one may be too much, too few or wrong. */
const CHARACTERS_PER_TYPO = 3;

/** What other APIs call a parameter of this one. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['max', 'limit'],
  ['maxresults', 'limit'],
  ['count', 'limit'],
  ['size', 'limit'],
  ['type', 'kinds'],
  ['types', 'kinds'],
]);

/** Describes the first names of parameters that do not exist; the last description states how many more there are. */
export function unknownParameters(
  names: readonly string[],
  describe: (name: string) => { field: string; message: string },
): { field: string; message: string }[] {
  const more = names.length - UNKNOWN_SHOWN_MAX;
  return names.slice(0, UNKNOWN_SHOWN_MAX).map((name, index) => {
    const { field, message } = describe(name);
    const isLast = more > 0 && index === UNKNOWN_SHOWN_MAX - 1;
    return { field, message: isLast ? `${message} ${more} more unknown names are not listed.` : message };
  });
}

/**
 * The message about a parameter that does not exist: it names those that do, and the one that is meant.
 *
 * @param shown the name as it may be shown
 */
export function unknownParameterMessage(shown: string, of: 'operation' | 'tool', valid: readonly string[]): string {
  const meant = meantName(shown, valid);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  const names = valid.length > 0 ? `Its parameters: ${valid.join(', ')}.` : 'It takes no parameters here.';
  return `${JSON.stringify(shown)} is not a parameter of this ${of}.${hint} ${names}`;
}

/** The one of the valid names that a name abbreviates, continues or misspells, such as `languages` for `lang`. */
export function meantName(
  name: string,
  valid: readonly string[],
  typosMax = lettersOf(name).length / CHARACTERS_PER_TYPO,
): string | undefined {
  const wanted = lettersOf(name);
  if (wanted.length < PREFIX_CHARACTERS_MIN) return undefined;
  const otherName = valid.find((each) => OTHER_NAMES.get(wanted) === each);
  if (otherName !== undefined) return otherName;
  const byPrefix = valid.find((each) => lettersOf(each).startsWith(wanted) || wanted.startsWith(lettersOf(each)));
  const similar = valid.filter((each) => Math.abs(lettersOf(each).length - wanted.length) <= typosMax);
  return byPrefix ?? similar.find((each) => editDistance(wanted, lettersOf(each)) <= typosMax);
}

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z]/g, '');
}

/** The number of letters to add, remove or replace (Levenshtein). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...to].entries())
      next.push(
        Math.min((row[column] ?? 0) + (letter === other ? 0 : 1), (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
}
