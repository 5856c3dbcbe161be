import { createRequire, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);
const realImmediate = setImmediate;
const START_MS = Date.UTC(2026, 10, 1);
/** Turns of the event loop without a timer or a request after which nothing is left to do at this instant. */
const QUIET_TURNS = 2;

/**
 * The time of this process: every clock and timer that the service and the fake YouTube use advances only when all work at
 * an instant is done. A day takes as long as its work, and is the same in every run.
 */
export class VirtualTime {
  nowMs = 0;
  /** Grows with every timer and request, so that turns without any can be recognized. */
  activity = 0;
  /** The next one first. */
  #timers = [];

  /** Replaces the clocks and timers of the process. */
  install() {
    const set = (callback, ms) => this.#add(this.nowMs + Math.max(1, Number(ms) || 1), callback);
    globalThis.setTimeout = (callback, ms, ...args) => set(() => callback(...args), ms);
    globalThis.clearTimeout = (timer) => timer?.cancel();
    Date.now = () => START_MS + Math.floor(this.nowMs);
    performance.now = () => this.nowMs;
    require('node:timers/promises').setTimeout = (ms, value, { signal } = {}) =>
      new Promise((resolve, reject) => {
        const fail = () => reject(signal.reason);
        if (signal?.aborted) return fail();
        const timer = set(() => (signal?.removeEventListener('abort', fail), resolve(value)), ms);
        signal?.addEventListener('abort', () => (timer.cancel(), fail()), { once: true });
      });
    // The sessions of a gateway, so that every run has the same ones.
    require('node:crypto').randomBytes = (count) =>
      Buffer.from(Array.from({ length: count }, () => Math.floor(Math.random() * 256)));
    syncBuiltinESMExports();
  }

  /** Resolves after this many milliseconds of this time. */
  wait(ms) {
    return new Promise((resolve) => this.#add(this.nowMs + ms, resolve));
  }

  /** Advances from timer to timer until `done` is settled. */
  async runUntil(done) {
    let settled = false;
    const result = done.finally(() => (settled = true));
    result.catch(() => undefined);
    for (;;) {
      await this.#quiet();
      if (settled) return result;
      const next = this.#pop();
      if (!next) throw new Error('Nothing is left to wait for');
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.callback();
      while (this.#timers[0] && this.#timers[0].atMs <= this.nowMs) this.#pop()?.callback();
    }
  }

  async #quiet() {
    for (let quiet = 0; quiet < QUIET_TURNS;) {
      const before = this.activity;
      await new Promise((resolve) => realImmediate(resolve));
      quiet = this.activity === before ? quiet + 1 : 0;
    }
  }

  #add(atMs, callback) {
    this.activity += 1;
    const timer = {
      atMs,
      callback,
      canceled: false,
      cancel: () => void (timer.canceled = true),
      ref: () => timer,
      unref: () => timer,
    };
    // Behind those of the same time.
    let [low, high] = [0, this.#timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#timers[middle].atMs <= atMs) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
    return timer;
  }

  /** The next timer that is not cancelled. */
  #pop() {
    for (;;) {
      const timer = this.#timers.shift();
      if (!timer?.canceled) return timer;
    }
  }
}
