import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { until } from '../../test/harness/until.js';
import { type BackgroundLoop, type Round, BackgroundLoops } from './background-loops.js';

const NEVER_MS = 3_600_000;

let registry: Registry;
let loops: BackgroundLoops | undefined;

function start(pauseMs: number, round: Round, count = 1): BackgroundLoop {
  registry = new Registry();
  loops = new BackgroundLoops(registry);
  const loop = loops.create('example', pauseMs, round);
  loop.start(count);
  return loop;
}

afterEach(async () => {
  await loops?.stop();
  jest.restoreAllMocks();
});

/** A round that a test ends. */
function heldRound() {
  const ends: (() => void)[] = [];
  const round = jest.fn<Round>(() => new Promise<void>((resolve) => ends.push(resolve)));
  return { round, end: () => ends.splice(0).forEach((end) => end()) };
}

describe('a loop', () => {
  it('runs rounds without a pause while there may be more, then pauses until it is woken', async () => {
    let rounds = 0;
    const loop = start(NEVER_MS, () => Promise.resolve(++rounds < 3 ? 'again' : undefined));
    await until(() => rounds === 3);
    await nextTurn();
    expect(rounds).toBe(3);
    loop.wake();
    await until(() => rounds === 4);
  });

  it('loses no wake during a round that found nothing', async () => {
    const { round, end } = heldRound();
    const loop = start(NEVER_MS, round);
    loop.wake();
    end();
    await until(() => round.mock.calls.length === 2);
    end();
    await nextTurn();
    expect(round).toHaveBeenCalledTimes(2);
  });

  it('runs as many rounds at a time as it was started with, and wakes all of them', async () => {
    const { round, end } = heldRound();
    const loop = start(NEVER_MS, round, 2);
    expect(round).toHaveBeenCalledTimes(2);
    end();
    await nextTurn();
    expect(round).toHaveBeenCalledTimes(2);
    loop.wake();
    await until(() => round.mock.calls.length === 4);
    end();
  });

  it('aborts its round when it stops, and waits for its end', async () => {
    const steps: string[] = [];
    const loop = start(NEVER_MS, async (stop) => {
      await new Promise((resolve) => stop.addEventListener('abort', resolve));
      await nextTurn();
      steps.push('round ended');
      return 'again';
    });
    await loop.stop();
    expect(steps).toEqual(['round ended']);
  });

  it('logs the first failure of an outage and counts each', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    let rounds = 0;
    start(1, async (stop) => {
      rounds += 1;
      if (rounds > 6) return once(stop, 'abort');
      if (rounds % 3 > 0) throw new Error('unavailable');
      return 'again';
    });
    await until(() => rounds > 6);
    expect(warn.mock.calls).toEqual(
      Array(2).fill([{ event: 'background_failed', loop: 'example', cause: 'Error: unavailable' }]),
    );
    expect(await registry.metrics()).toMatch(/^ct_background_failures_total\{loop="example"\} 4$/m);
  });

  it('pauses after a failure although it is woken', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const round = jest.fn<Round>(() => Promise.reject(new Error('unavailable')));
    const loop = start(NEVER_MS, round);
    await nextTurn();
    loop.wake();
    await nextTurn();
    expect(round).toHaveBeenCalledTimes(1);
  });
});

describe('the loops of a process', () => {
  it('wait for what the rounds have left running', async () => {
    registry = new Registry();
    loops = new BackgroundLoops(registry);
    const afterEnd = jest.fn(() => Promise.resolve());
    loops.create('example', NEVER_MS, () => Promise.resolve(), afterEnd).start();
    expect(afterEnd).not.toHaveBeenCalled();
    await loops.stop();
    expect(afterEnd).toHaveBeenCalledTimes(1);
  });
});
