import { Injectable } from '@nestjs/common';

/** Lets the workers of this process wait for work. Other processes find what nobody announces to them by their sweep. */
@Injectable()
export class WakeUps {
  private readonly waiting: (() => void)[] = [];
  private missed = false;

  /** Wakes one worker; when none waits, the next one does not wait. */
  wake(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.missed = true;
  }

  wakeAll(): void {
    for (const next of this.waiting.splice(0)) next();
  }

  wait(): Promise<void> {
    if (!this.missed) return new Promise((resolve) => this.waiting.push(resolve));
    this.missed = false;
    return Promise.resolve();
  }
}
