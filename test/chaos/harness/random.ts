import { pick, seededRandom } from '../../fake-youtube/catalogue/random.js';

/** The source of all random choices: one seed, so that a run can be repeated. */
export class RandomSource {
  private readonly random: () => number;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.random() * count);
  }

  /** True with this probability, 0 to 1. */
  often(share: number): boolean {
    return this.random() < share;
  }

  pick<T>(from: readonly T[]): T {
    return pick(this.random, from);
  }

  /** One of several, with a probability proportional to its weight. */
  weighted<T>(from: readonly (readonly [weight: number, item: T])[]): T {
    let rest = this.random() * from.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, item] of from) if ((rest -= weight) < 0) return item;
    return this.pick(from)[1];
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)));
  }

  text(length: number, alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'): string {
    return Array.from({ length }, () => alphabet[this.below(alphabet.length)]).join('');
  }
}
