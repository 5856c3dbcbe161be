/** A percent-encoded byte, whose percent sign may itself be encoded any number of times. */
const ENCODED = /%(?:25)*[0-9a-f]{2}/gi;
const SEQUENCE = /(?:%[0-9a-f]{2})+/gi;
/** Each layer triples the length of a text, so that no request line has room for more. */
const LAYERS_MAX = 16;
const ILLEGIBLE = '(encoded too often)';

/**
 * A path for a log or a trace: decoded through all layers of encoding, even where it is malformed, because a key can only
 * be redacted in its decoded form.
 */
export function legiblePath(path: string): string {
  let text = path;
  for (let layer = 0; layer < LAYERS_MAX; layer += 1) {
    const decoded = text.replace(ENCODED, (code) => `%${code.slice(-2)}`).replace(SEQUENCE, decodedSequence);
    if (decoded === text) return text;
    text = decoded;
  }
  return ILLEGIBLE;
}

/** Decodes only the ASCII characters of a sequence that is not valid UTF-8. */
function decodedSequence(sequence: string): string {
  try {
    return decodeURIComponent(sequence);
  } catch {
    return sequence.replace(/%[0-7][0-9a-f]/gi, decodeURIComponent);
  }
}
