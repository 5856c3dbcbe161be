/** Why bytes are no valid frame. */
export type FrameFault = 'malformed_frame' | 'frame_too_large';

export class FrameError extends Error {
  constructor(readonly fault: FrameFault) {
    super(fault);
  }
}

const HASH = 0x23;
const EMPTY = Buffer.alloc(0);

/**
 * Parses the frames of Nest's TCP transport: the length of a text in UTF-16 units, `#`, and the text. Only the received
 * bytes of one frame are buffered, in one buffer of exactly that size: a length allocates nothing, and one that is too
 * large is refused before its text arrives.
 */
export class FrameReader {
  private bytes: Buffer = EMPTY;
  /** Length of the text; undefined until it has arrived. */
  private units: number | undefined;
  /** Progress of measuring the text: bytes, their UTF-16 units, and missing bytes of the last character. */
  private scanned = 0;
  private scannedUnits = 0;
  private continuations = 0;
  private readonly decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  /** @param bytesMax the maximum size of the text of one frame */
  constructor(private readonly bytesMax: number) {}

  get bufferedBytes(): number {
    return this.bytes.length;
  }

  /** Whether a frame has arrived in part. Valid after `next` has returned undefined. */
  get isUnfinished(): boolean {
    return this.bytes.length > 0 || this.units !== undefined;
  }

  push(chunk: Buffer): void {
    if (this.bytes.length === 0) {
      this.bytes = chunk;
      return;
    }
    const bytes = Buffer.allocUnsafeSlow(this.bytes.length + chunk.length);
    this.bytes.copy(bytes);
    chunk.copy(bytes, this.bytes.length);
    this.bytes = bytes;
  }

  /**
   * The text of the next frame; undefined until more has arrived.
   *
   * @throws FrameError when the bytes are no frame, or the frame is too large
   */
  next(): string | undefined {
    this.units ??= this.readLength();
    if (this.units === undefined || !this.measure(this.units)) return undefined;
    const text = this.decode(this.bytes.subarray(0, this.scanned));
    this.bytes = this.bytes.subarray(this.scanned);
    this.units = undefined;
    this.scanned = this.scannedUnits = 0;
    return text;
  }

  /** Copies an unfinished frame out of its chunk. To be called before the next turn of the event loop. */
  detach(): void {
    const { bytes } = this;
    if (bytes.length === bytes.buffer.byteLength) return;
    this.bytes = bytes.length === 0 ? EMPTY : Buffer.allocUnsafeSlow(bytes.length);
    bytes.copy(this.bytes);
  }

  private readLength(): number | undefined {
    const digitsMax = String(this.bytesMax).length;
    const hash = this.bytes.subarray(0, digitsMax + 1).indexOf(HASH);
    const written = this.bytes.toString('latin1', 0, hash === -1 ? digitsMax + 1 : hash);
    if (hash === -1 && /^[0-9]*$/.test(written)) {
      if (written.length > digitsMax) throw new FrameError('frame_too_large');
      return undefined;
    }
    if (hash === -1 || !/^[0-9]+$/.test(written)) throw new FrameError('malformed_frame');
    if (Number(written) > this.bytesMax) throw new FrameError('frame_too_large');
    this.bytes = this.bytes.subarray(hash + 1);
    return Number(written);
  }

  /** Measures the text up to its end. @returns whether the end has arrived */
  private measure(units: number): boolean {
    const { bytes } = this;
    while (this.scannedUnits < units || this.continuations > 0) {
      const byte = bytes[this.scanned];
      if (byte === undefined) return false;
      if (this.continuations > 0) this.continuations -= 1;
      else {
        this.continuations = byte < 0xc0 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
        this.scannedUnits += this.continuations === 3 ? 2 : 1;
      }
      this.scanned += 1;
      if (this.scanned > this.bytesMax) throw new FrameError('frame_too_large');
    }
    // The length splits a surrogate pair.
    if (this.scannedUnits > units) throw new FrameError('malformed_frame');
    return true;
  }

  private decode(bytes: Buffer): string {
    try {
      return this.decoder.decode(bytes);
    } catch {
      throw new FrameError('malformed_frame');
    }
  }
}
