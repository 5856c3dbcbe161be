import fc from 'fast-check';

const CODE_POINTS = 0x11_0000;
const [SURROGATES_START, SURROGATES] = [0xd800, 0x800];

/** Any character of Unicode. fast-check's own unit `binary` is the same but takes more than a second to prepare. */
const character = fc
  .nat(CODE_POINTS - SURROGATES - 1)
  .map((index) => String.fromCodePoint(index < SURROGATES_START ? index : index + SURROGATES));

/** Texts of any characters, control characters and unassigned ones included. */
export function anyText(length: { maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ unit: character, ...length });
}
