const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Writes a number in base 62 with a fixed number of digits. */
export function base62(value: bigint, digitsCount: number): string {
  const digits: string[] = [];
  for (let rest = value; digits.length < digitsCount; rest /= 62n) digits.unshift(ALPHABET.charAt(Number(rest % 62n)));
  return digits.join('');
}

/** Writes bytes in base 62, in as many digits as the largest bytes need. */
export function bytesToBase62(bytes: Buffer): string {
  return base62(BigInt(`0x${bytes.toString('hex')}`), Math.ceil((bytes.length * 8) / Math.log2(62)));
}
