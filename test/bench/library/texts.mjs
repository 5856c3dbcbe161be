/*
 * Texts of three scripts, made up word by word. Words are as frequent as in speech: the one of rank n is 1/n times as frequent as the
 * first. The same numbers give the same texts.
 */

const VOCABULARY = 60_000;
const TABLE_BITS = 22;
const SEGMENT_SECONDS = 2.4;
/** A word that one text of each language has, once. */
const RARE_RANK = VOCABULARY;

/** Ranks by their share of a table, so that a place in it taken at random is a word taken by its frequency. */
const RANKS = ranksByFrequency();

function ranksByFrequency() {
  const ranks = new Uint16Array(2 ** TABLE_BITS);
  let sum = 0;
  for (let rank = 0; rank < VOCABULARY; rank += 1) sum += 1 / (rank + 1);
  let [place, reached] = [0, 0];
  for (let rank = 0; rank < VOCABULARY; rank += 1) {
    reached += 1 / (rank + 1);
    for (const end = Math.round((reached / sum) * ranks.length); place < end; place += 1) ranks[place] = rank;
  }
  return ranks;
}

const syllables = (consonants, vowels) =>
  [...consonants].flatMap((first) => [...vowels].map((second) => first + second));
const LATIN = syllables('bdfghjklmnprstvwz', 'aeiou');
const CYRILLIC = syllables('бвгджзклмнпрстфхцчш', 'аеиоуыя');
const HAN_FIRST = 0x4e00;
const HAN_CHARACTERS = 3_000;

/** Common words are short. */
function spell(alphabet, rank) {
  let word = '';
  for (let rest = rank + 1; rest > 0; rest = Math.floor(rest / alphabet.length))
    word += alphabet[rest % alphabet.length];
  return word;
}

/** Of one character when it is common, else of two. */
function spellHan(rank) {
  const character = (number) => String.fromCodePoint(HAN_FIRST + (number % HAN_CHARACTERS));
  return rank < 200 ? character(rank) : character(rank) + character(rank * 7 + Math.floor(rank / HAN_CHARACTERS) * 101);
}

/** `share` of the passages, and the words of a segment. */
export const LANGUAGES = {
  en: { share: 0.6, words: 6, space: ' ', spell: (rank) => spell(LATIN, rank) },
  ru: { share: 0.2, words: 6, space: ' ', spell: (rank) => spell(CYRILLIC, rank) },
  zh: { share: 0.2, words: 6, space: '', spell: spellHan },
};

export const wordOf = (language, rank) => LANGUAGES[language].spell(rank);
export const rareWordOf = (language) => wordOf(language, RARE_RANK);

/** Numbers of 32 bits, in an order that their seed decides (mulberry32). */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** The segments of a text of so many minutes. */
export function segmentsOf(language, seed, minutes, hasRareWord = false) {
  const { words, space, spell: spelled } = LANGUAGES[language];
  const next = randomNumbers(seed);
  const word = () => spelled(RANKS[next() >>> (32 - TABLE_BITS)]);
  return Array.from({ length: Math.round((minutes * 60) / SEGMENT_SECONDS) }, (_segment, index) => {
    const said = Array.from({ length: words }, word);
    if (hasRareWord && index === 100) said[0] = rareWordOf(language);
    return { text: said.join(space), start: Number((index * SEGMENT_SECONDS).toFixed(1)), duration: SEGMENT_SECONDS };
  });
}
