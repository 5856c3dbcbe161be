// The CRC-32 of a whole from those of its parts, as zlib's crc32_combine does it: appending n bytes multiplies the
// polynomial by x^(8n), and multiplication modulo the CRC's polynomial is done bit by bit.

const POLYNOMIAL = 0xedb88320;

/** a * b modulo the polynomial, bits reflected as the CRC has them. */
function multiply(a: number, b: number): number {
  let product = 0;
  let factor = b;
  for (let bit = 0x80000000; bit !== 0; bit >>>= 1) {
    if (a & bit) product ^= factor;
    factor = factor & 1 ? (factor >>> 1) ^ POLYNOMIAL : factor >>> 1;
  }
  return product >>> 0;
}

/** x^(2^n) for n = 0, 1, 2, …; squaring goes round after 32 because x^(2^32 - 1) = 1. */
const POWERS: readonly number[] = Array.from({ length: 32 }).reduce<number[]>((powers) => {
  const last = powers.at(-1);
  powers.push(last === undefined ? 0x40000000 : multiply(last, last));
  return powers;
}, []);

/** The factor by which appending so many bytes multiplies a checksum. */
export function shiftBy(bytes: number): number {
  let shift = 0x80000000;
  let power = 3;
  for (let left = bytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) shift = multiply(POWERS[power % 32] ?? 0, shift);
    power++;
  }
  return shift;
}

/** The CRC-32 of two texts, one behind the other; `shift` is `shiftBy` the length of the second. */
export function joinedCrc32(first: number, second: number, shift: number): number {
  return (multiply(shift, first) ^ second) >>> 0;
}
