/** The bytes in their own allocation: a slice would keep the whole allocation that it belongs to alive. */
export function detached(value: Buffer): Buffer {
  if (value.buffer.byteLength === value.byteLength) return value;
  const copy = Buffer.allocUnsafeSlow(value.byteLength);
  value.copy(copy);
  return copy;
}
