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

/** The characters that a segment of a path contains without percent-encoding. */
const PATH_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@";

/** These characters, and now and then another one, percent-encoded. */
function partOf(characters: string): fc.Arbitrary<string> {
  const unit = fc.oneof(
    { weight: 10, arbitrary: fc.constantFrom(...characters) },
    { weight: 1, arbitrary: character.map(encodeURIComponent) },
  );
  return fc.string({ unit, maxLength: 12 });
}

const anySegments = fc.array(partOf(PATH_CHARACTERS), { maxLength: 4 });
const anyQuery = partOf(`${PATH_CHARACTERS}/?`);

/** @param absent in how many of ten cases the mark and the text are absent */
const optional = (mark: string, text: fc.Arbitrary<string | number>, absent: number): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: absent, arbitrary: fc.constant('') },
    { weight: 10 - absent, arbitrary: text.map((value) => `${mark}${value}`) },
  );

/**
 * Any path of a URL, with a query and a fragment or without. fast-check's own `webPath` and `webUrl` take more than a second to
 * prepare.
 */
export function anyPathAndQuery(): fc.Arbitrary<string> {
  return fc
    .tuple(anySegments, optional('?', anyQuery, 5), optional('#', anyQuery, 8))
    .map(([segments, query, fragment]) => segments.map((segment) => `/${segment}`).join('') + query + fragment);
}

/** Any URL of http or https. */
export function anyUrl(): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom('http', 'https'), fc.domain(), optional(':', fc.nat(65_535), 8), anyPathAndQuery())
    .map(([scheme, host, port, path]) => `${scheme}://${host}${port}${path}`);
}
