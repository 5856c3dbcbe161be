/** Gives promises in the order in which they finish: each step is a promise of the next one that does. */
export class CompletionOrder<T> {
  private readonly finished: Promise<T>[] = [];
  private readonly awaited: ((value: Promise<T>) => void)[] = [];
  private added = 0;

  add(promise: Promise<T>): void {
    this.added++;
    const finish = (): void => {
      const next = this.awaited.shift();
      if (next) next(promise);
      else this.finished.push(promise);
    };
    promise.then(finish, finish);
  }

  *[Symbol.iterator](): Generator<Promise<T>> {
    for (let given = 0; given < this.added; given++) {
      yield this.finished.shift() ?? new Promise<T>((resolve) => this.awaited.push(resolve));
    }
  }
}
