/** Why a connection's bytes cannot be read as frames. */
export type FrameFault = 'malformed_frame' | 'frame_too_large';

export class FrameError extends Error {
  constructor(readonly fault: FrameFault) {
    super(fault);
  }
}

const HASH = 0x23;
const EMPTY = Buffer.alloc(0);

/**
 * Cuts bytes into the frames of Nest's TCP transport: the length of a text in UTF-16 units, `#`, and the text. What a
 * connection makes the service hold is what it has sent of one frame, in one buffer of exactly that size: a length
 * reserves nothing, and one that is too large is refused before its text arrives.
 */
export class FrameReader {
  private bytes: Buffer = EMPTY;
  /** Of the text, once the length has arrived. */
  private units: number | undefined;
  /** How far the text has been measured: bytes, the UTF-16 units in them, and bytes of the last character to come. */
  private scanned = 0;
  private scannedUnits = 0;
  private continuations = 0;
  private readonly decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  /** @param bytesMax of one frame's text */
  constructor(private readonly bytesMax: number) {}

  /** What it holds. */
  get bufferedBytes(): number {
    return this.bytes.length;
  }

  /** Whether the beginning of a frame is there, and its end is not. To be asked when there is no next frame. */
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
   * @throws FrameError when what has arrived is no frame, or too large a one
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

  /** Copies what is unfinished out of the chunk it came in. To be called before the next turn of the event loop. */
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

  /** Goes on to the end of the text, and says whether it is there. */
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
    // The length ends between the halves of a surrogate pair.
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
