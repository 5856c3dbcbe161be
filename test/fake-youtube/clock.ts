/** The fake YouTube's time, which can run faster than real time. */
export class Clock {
  private scale = 1;
  private anchorMs: number;
  private startMs: number;

  /** @param realNow milliseconds since the epoch */
  constructor(private readonly realNow: () => number = () => Date.now()) {
    this.anchorMs = this.startMs = realNow();
  }

  /** Milliseconds since the epoch. */
  now(): number {
    return this.startMs + (this.realNow() - this.anchorMs) * this.scale;
  }

  /** Lets the time run this many times as fast as real time from now on. */
  accelerate(scale: number): void {
    this.startMs = this.now();
    this.anchorMs = this.realNow();
    this.scale = scale;
  }
}
