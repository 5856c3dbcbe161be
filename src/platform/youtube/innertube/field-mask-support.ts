/**
 * How a reading looks where a `$fields` mask may have been at work. `ignored`: the whole answer came all the same;
 * `doubtful`: what is missing may have been cut away; `failed`: nothing came that could be judged.
 */
export type MaskVerdict = 'proof' | 'fine' | 'ignored' | 'doubtful' | 'failed';

/**
 * Partial responses where they are honoured. `$fields` is recorded for WEB and ANDROID and unproved for the others, so a
 * doubtful reading is checked once without the mask. A client that then says more, or that ignores the mask, is asked
 * without it from then on.
 */
export class FieldMaskSupport {
  private readonly refused = new Set<string>();
  private readonly proved = new Set<string>();

  /** @param onRefused told the key of what turned out not to honour a mask */
  constructor(private readonly onRefused: (key: string) => void = () => undefined) {}

  /**
   * Reads with the mask where it is worth trying.
   *
   * @param key what the finding is remembered under: the client and the kind of request
   * @param ask asks and reads, with or without the mask
   * @param judge a `proof` shows that the mask lets the important part through: `fine` readings are trusted from then on,
   *   and only what is `doubtful` in itself is checked
   */
  async read<R>(key: string, ask: (masked: boolean) => Promise<R>, judge: (reading: R) => MaskVerdict): Promise<R> {
    if (this.refused.has(key)) return ask(false);
    const masked = await ask(true);
    const verdict = judge(masked);
    if (verdict === 'proof') this.proved.add(key);
    if (verdict === 'ignored') this.refuse(key);
    if (verdict !== 'doubtful') return masked;
    const whole = await ask(false);
    if (['proof', 'fine'].includes(judge(whole))) this.refuse(key);
    return whole;
  }

  /** Whether a mask was seen to let the important part through. */
  isProved(key: string): boolean {
    return this.proved.has(key);
  }

  private refuse(key: string): void {
    if (this.refused.has(key)) return;
    this.refused.add(key);
    this.onRefused(key);
  }
}
