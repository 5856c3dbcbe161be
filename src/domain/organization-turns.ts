/** Runs the work of each organization with at most so much of it at a time, in the order in which it came. */
export class OrganizationTurns {
  /** Of the organizations whose work runs. */
  private readonly turns = new Map<string, { free: number; waiting: (() => void)[] }>();

  constructor(private readonly atOnceMax: number) {}

  /** @returns what the work returns, when it has had its turn */
  async run<T>(organizationId: string, work: () => Promise<T>): Promise<T> {
    const turn = this.turns.get(organizationId) ?? { free: this.atOnceMax, waiting: [] };
    this.turns.set(organizationId, turn);
    if (turn.free > 0) turn.free--;
    else await new Promise<void>((resolve) => turn.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = turn.waiting.shift();
      if (next) next();
      else if (++turn.free === this.atOnceMax) this.turns.delete(organizationId);
    }
  }
}
