/** Any percent-encoding of a character, whose own percent sign may be encoded again any number of times. */
const ENCODED = /%(?:25)*[0-9a-f]{2}/gi;
const SEQUENCE = /(?:%[0-9a-f]{2})+/gi;
/** Each further layer makes a text three times as long, so that a request line has room for fewer. */
const LAYERS_MAX = 16;
const ILLEGIBLE = '(encoded too often)';

/**
 * A path as a log or a trace shows it: decoded whole, however often it was encoded and even where it is malformed, because
 * a key in it is recognised by its plain characters only.
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

/** What is no UTF-8 stays encoded, and the ASCII characters beside it do not. */
function decodedSequence(sequence: string): string {
  try {
    return decodeURIComponent(sequence);
  } catch {
    return sequence.replace(/%[0-7][0-9a-f]/gi, decodeURIComponent);
  }
}
