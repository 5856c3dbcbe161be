import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { newContext } from '../../../../test/youtube/egresses.js';
import type { ReadingContext } from '../../video-platform.js';
import { Attempt } from './attempt.js';
import { Line, type QueuedRequest } from './line.js';
import { RequestQueue } from './request-queue.js';
import type { NotSent } from './upstream-response.js';

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

/** Lets everything run that waits for nothing else. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A line whose waits the test sets, and how often they were asked for. */
class TestLine extends Line {
  asked = 0;
  startWait: (background: boolean) => number = () => 0;
  pace: (ahead: number) => number = () => 0;
  shut: NotSent | null = null;

  override startWaitMs(background: boolean): number {
    this.asked += 1;
    return this.startWait(background);
  }

  override paceMs(_background: boolean, ahead: number): number {
    this.asked += 1;
    return this.pace(ahead);
  }

  override refusal(): NotSent | null {
    return this.shut;
  }
}

interface Asking {
  line?: Line;
  /** The attempt that the request belongs to; by default a new one. */
  attempt?: Attempt | undefined;
}

/** A queue of some slots, and the requests that run, whose ends the test gives. */
function newQueue(slots: number, now?: () => number) {
  const queue = new RequestQueue(slots, now);
  const open = (max = slots, videos?: Line) => {
    const hooks = { onChange: () => queue.startNext(), onPause: () => undefined };
    const options = { startsSlowly: false, now: () => 0, ...hooks };
    return { line: queue.open(new TestLine({ max, running: 0 }, new Map(), options, videos)) };
  };
  const { line } = open();
  const running = new Map<string, { isJob: boolean; end: () => Promise<void>; fail: () => Promise<void> }>();
  /** The names of the requests that were sent, in order. */
  const sent: string[] = [];
  const ask = (name: string, context: Partial<ReadingContext> = {}, asking: Asking = {}) => {
    const { line: of = line, attempt = new Attempt(name) } = asking;
    const send = () => {
      sent.push(name);
      return new Promise<{ kind: 'done' }>((resolve, reject) => {
        const ended = (settleIt: () => void) => async () => {
          running.delete(name);
          settleIt();
          await settle();
        };
        running.set(name, {
          isJob: context.background === true,
          end: ended(() => resolve({ kind: 'done' })),
          fail: ended(() => reject(new Error('failed'))),
        });
      });
    };
    const request: QueuedRequest = { kind: 'player', attempt, context: inPlace(newContext(), context) };
    const done = queue.run(of, request, send);
    done.catch(() => undefined);
    return done;
  };
  /** Ends the request of this name. */
  const end = (name: string) => running.get(name)?.end();
  /** Ends what runs until nothing does. */
  const endAll = async () => {
    for (let [first] = running.values(); first; [first] = running.values()) await first.end();
  };
  return { queue, line, open, ask, sent, running, end, endAll };
}

/** A context whose properties are read from another object each time, as those of shared work are. */
function inPlace(context: ReadingContext, changes: Partial<ReadingContext>): ReadingContext {
  return new Proxy(context, {
    get: (target, key) => (key in changes ? Reflect.get(changes, key) : Reflect.get(target, key)) as unknown,
  });
}

/** Lets enough attempts of this time end that it is known. */
function learn(line: Line, seconds: number): void {
  for (let times = 0; times < 32; times += 1) line.learn(seconds);
}

/** Callers of one call of an organization each. */
const caller = (organizationId: string, background = false) => ({ organizationId, fairnessKey: {}, background });

describe('the slots', () => {
  it('are never exceeded, neither those of the process nor those of an egress', async () => {
    const { queue, open, ask, sent, running, end, endAll } = newQueue(3);
    const [small, large] = [open(1), open(3)];
    for (const index of [1, 2, 3]) void ask(`small ${index}`, {}, small);
    expect(sent).toEqual(['small 1']);
    for (const index of [1, 2, 3]) void ask(`large ${index}`, {}, large);
    expect([...running.keys()]).toEqual(['small 1', 'large 1', 'large 2']);
    expect([queue.running, queue.queued]).toEqual([3, 3]);
    await end('large 1');
    expect([...running.keys()]).toEqual(['small 1', 'large 2', 'large 3']);
    await endAll();
    expect([queue.running, queue.queued, sent.length]).toEqual([0, 0, 6]);
  });

  it('are free again after a request that failed', async () => {
    const { queue, ask, sent, running } = newQueue(1);
    const failing = ask('a');
    void ask('b');
    await running.get('a')?.fail();
    await expect(failing).rejects.toThrow('failed');
    expect([sent, queue.running]).toEqual([['a', 'b'], 1]);
  });

  it('are shared by the egresses in turn', async () => {
    const { open, ask, sent, endAll } = newQueue(1);
    const [one, other] = [open(), open()];
    for (const index of [1, 2, 3]) void ask(`one ${index}`, {}, one);
    for (const index of [1, 2, 3]) void ask(`other ${index}`, {}, other);
    await endAll();
    expect(sent).toEqual(['one 1', 'other 1', 'one 2', 'other 2', 'one 3', 'other 3']);
  });

  it('are used by another egress while the first one may not start anything', async () => {
    const { open, ask, sent, queue, endAll } = newQueue(1);
    const [held, other] = [open(), open()];
    held.line.startWait = () => Infinity;
    void ask('held', {}, held);
    void ask('other', {}, other);
    expect(sent).toEqual(['other']);
    held.line.startWait = () => 0;
    queue.startNext();
    await endAll();
    expect(sent).toEqual(['other', 'held']);
  });
});

describe('the order', () => {
  it('lets organizations take turns, and calls before them of which a request was sent', async () => {
    const { ask, sent, endAll, end } = newQueue(1);
    const [large, small] = [caller('large'), caller('small')];
    const started = new Attempt('large 1');
    void ask('large 1', large, { attempt: started });
    for (const index of [2, 3, 4]) void ask(`large ${index}`, large);
    for (const index of [1, 2]) void ask(`small ${index}`, small);
    void ask('large 1, text', large, { attempt: started });
    await end('large 1');
    expect(sent.at(-1)).toBe('large 1, text');
    await endAll();
    expect(sent.slice(2)).toEqual(['large 2', 'small 1', 'large 3', 'small 2', 'large 4']);
  });

  it('sends the later requests of what has started although nothing may start', () => {
    const { line, ask, sent } = newQueue(2);
    line.startWait = () => Infinity;
    const started = new Attempt('a');
    started.started = true;
    void ask('start');
    void ask('text', {}, { attempt: started });
    expect(sent).toEqual(['text']);
  });

  it('finishes the list of a call before another call begins one', async () => {
    const { line, open, ask, sent, end, endAll } = newQueue(1);
    const lists = open(1, line);
    const [one, other] = [caller('a'), caller('b')];
    void ask('id of one', one, lists);
    void ask('id of other', other, lists);
    void ask('video');
    void ask('list of one', one, lists);
    await end('id of one');
    expect(sent).toEqual(['id of one', 'list of one']);
    await endAll();
    expect(sent).toHaveLength(4);
  });

  it('begins lists in half of the slots, and starts videos in the others', async () => {
    const { line, open, ask, sent, end, endAll } = newQueue(8);
    const lists = open(8, line);
    for (let call = 0; call < 8; call += 1) void ask(`id ${call}`, caller(`${call}`), lists);
    for (let video = 0; video < 4; video += 1) void ask(`video ${video}`);
    expect(sent.toSorted()).toEqual([...[0, 1, 2, 3].map((n) => `id ${n}`), ...[0, 1, 2, 3].map((n) => `video ${n}`)]);
    await end('video 0');
    expect(sent).toHaveLength(8);
    await end('id 2');
    expect(sent.at(-1)).toBe('id 4');
    await endAll();
    expect(sent).toHaveLength(12);
  });

  it('starts jobs when no call waits, whichever came first', async () => {
    const { ask, sent, end, endAll } = newQueue(1);
    void ask('first');
    void ask('job 1', caller('a', true));
    void ask('job 2', caller('a', true));
    void ask('call', caller('a'));
    await end('first');
    expect(sent.at(-1)).toBe('call');
    await end('call');
    void ask('late call', caller('b'));
    await endAll();
    expect(sent).toEqual(['first', 'call', 'job 1', 'late call', 'job 2']);
  });

  it.each([
    [1, 1],
    [4, 3],
    [16, 12],
  ])('leaves a part of %d slots to calls: jobs get %d', (slots, jobsMax) => {
    const { ask, sent } = newQueue(slots);
    for (let index = 0; index < slots; index += 1) void ask(`job ${index}`, caller('a', true));
    expect(sent).toHaveLength(jobsMax);
    for (let index = 0; index < slots; index += 1) void ask(`call ${index}`, caller('b'));
    expect(sent).toHaveLength(slots);
  });

  it('leaves that part to calls also when jobs continue', async () => {
    const { ask, sent, running } = newQueue(4);
    const attempts = Array.from({ length: 6 }, (_, index) => new Attempt(`${index}`));
    const job = caller('a', true);
    for (const [index, attempt] of attempts.entries()) void ask(`job ${index}`, job, { attempt });
    for (const index of [0, 1, 2]) {
      await running.get(`job ${index}`)?.end();
      void ask(`text ${index}`, job, { attempt: attempts[index] });
    }
    expect(running.size).toBe(3);
    void ask('call', caller('b'));
    expect(sent.at(-1)).toBe('call');
  });

  it.each([
    ['nothing else happens', false],
    ['requests end all the time', true],
  ])('is that of a call within a second for a job’s request that a call waits for too, while %s', async (_, isBusy) => {
    const { ask, sent, running } = newQueue(2);
    void ask('running job', caller('a', true));
    const shared = caller('a', true);
    void ask('shared', shared);
    void ask('other job', caller('b', true));
    expect(sent).toEqual(['running job']);
    shared.background = false;
    for (let times = 0; times < 10; times += 1) {
      jest.advanceTimersByTime(100);
      if (!isBusy) continue;
      void ask(`call ${times}`, caller('c'));
      await running.get(`call ${times}`)?.end();
    }
    expect(sent.filter((name) => !name.startsWith('call'))).toEqual(['running job', 'shared']);
  });
});

describe('an aborted request', () => {
  it('rejects with the reason while it waits, and is not sent', async () => {
    const { queue, ask, sent, endAll } = newQueue(1);
    const leaving = new AbortController();
    void ask('first');
    const aborted = ask('aborted', { signal: leaving.signal });
    void ask('next');
    leaving.abort(new Error('left'));
    await expect(aborted).rejects.toThrow('left');
    expect(queue.queued).toBe(1);
    await expect(ask('late', { signal: leaving.signal })).rejects.toThrow('left');
    await endAll();
    expect([sent, queue.queued, queue.running, jest.getTimerCount()]).toEqual([['first', 'next'], 0, 0, 0]);
  });

  it('has its slot until its exchange has ended', async () => {
    const { queue, ask, running } = newQueue(1);
    const leaving = new AbortController();
    const aborted = ask('first', { signal: leaving.signal });
    leaving.abort(new Error('left'));
    expect(queue.running).toBe(1);
    await running.get('first')?.fail();
    await expect(aborted).rejects.toThrow('failed');
    expect(queue.running).toBe(0);
  });
});

describe('what cannot be served before its deadline', () => {
  const within = (seconds: number) => ({ deadlineAtMs: performance.now() + seconds * 1_000 });

  it('is busy at once, with the seconds after which it could start', async () => {
    const { line, ask, sent } = newQueue(2);
    // Six wait for two slots of a second each: the seventh starts after three seconds, and ends after four.
    learn(line, 1);
    for (let index = 0; index < 8; index += 1) void ask(`${index}`, within(60));
    await expect(ask('late', within(3.9))).resolves.toEqual({ kind: 'busy', retryAfterSeconds: 3 });
    void ask('in time', within(4));
    expect([sent, line.waiting]).toEqual([['0', '1'], 7]);
  });

  it('counts the turns: a small call is in time, of another organization and of the same one', async () => {
    const { line, ask } = newQueue(1);
    learn(line, 1);
    const large = caller('large');
    for (let index = 0; index < 31; index += 1) void ask(`${index}`, { ...large, ...within(60) });
    await expect(ask('large', { ...large, ...within(10) })).resolves.toMatchObject({ kind: 'busy' });
    void ask('small', { ...caller('small'), ...within(3) });
    void ask('same', { ...caller('large'), ...within(4) });
    expect(line.waiting).toBe(32);
  });

  it('is not refused for the time of the first few attempts', () => {
    const { line, ask } = newQueue(1);
    line.learn(10);
    for (let index = 0; index < 9; index += 1) void ask(`${index}`, within(30));
    expect(line.waiting).toBe(8);
  });

  it('is a list for its videos, when its organization waits for others until then', async () => {
    const { line, open, ask } = newQueue(1);
    const lists = open(1, line);
    learn(line, 1);
    const one = caller('one');
    for (let index = 0; index < 31; index += 1) void ask(`${index}`, { ...one, ...within(60) });
    const list = { ...caller('one'), ...within(30), forVideos: true };
    await expect(ask('list', list, lists)).resolves.toMatchObject({ kind: 'busy' });
    void ask('list alone', { ...list, forVideos: false }, lists);
    void ask('list of another', { ...list, ...caller('other') }, lists);
    expect(lists.line.waiting).toBe(2);
  });

  it('is what a rate does not allow in time, too', async () => {
    const { line, ask } = newQueue(2);
    line.pace = (ahead) => 5_000 + ahead * 1_000;
    line.startWait = () => line.pace(0);
    void ask('in time', within(6));
    await expect(ask('late', within(5.5))).resolves.toEqual({ kind: 'busy', retryAfterSeconds: 6 });
  });

  it('is not a request of what has started, and nothing is while no time is known and nothing waits', () => {
    const { line, ask, sent } = newQueue(2);
    void ask('first', within(0.1));
    learn(line, 60);
    const started = new Attempt('a');
    started.started = true;
    void ask('text', within(0.1), { attempt: started });
    expect(sent).toEqual(['first', 'text']);
  });

  it('is not what starts at once, however long attempts take', () => {
    let nowMs = performance.now();
    const { line, ask, sent } = newQueue(2, () => (nowMs += 0.001));
    learn(line, 60);
    void ask('first', within(10));
    expect(sent).toEqual(['first']);
  });

  it.each([
    ['nothing else happens', false],
    ['requests end all the time', true],
  ])('is refused long before its deadline when it becomes so while it waits and %s', async (_, isBusy) => {
    const { line, open, ask, running } = newQueue(2);
    const other = open();
    line.slots.running = line.slots.max;
    const refusedAtMs: number[] = [];
    for (let index = 0; index < 10; index += 1)
      void ask(`${index}`, within(30)).then(() => refusedAtMs.push(performance.now()));
    // Slots of two requests that take ten seconds each: six are in time.
    learn(line, 10);
    for (let times = 0; times < 15; times += 1) {
      jest.advanceTimersByTime(100);
      if (isBusy) {
        void ask(`other ${times}`, {}, other);
        await running.get(`other ${times}`)?.end();
      }
      await settle();
    }
    expect(line.waiting).toBe(4);
    expect(refusedAtMs).toHaveLength(6);
  });
});

it('what waits at a line that refuses it is refused at once', async () => {
  const { queue, line, ask } = newQueue(1);
  void ask('running');
  const waiting = [ask('a', caller('a')), ask('b', caller('b')), ask('job', caller('a', true))];
  line.shut = { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: 30 };
  line.refuseWaiting();
  expect(await Promise.all([...waiting, ask('later')])).toEqual(Array(4).fill(line.shut));
  expect(queue.queued).toBe(0);
});

it('a wait of a part of a millisecond ends by itself', async () => {
  const clock = { nowMs: 0 };
  const { line, ask, sent } = newQueue(1, () => clock.nowMs);
  const opensAtMs = 0.01;
  line.startWait = () => Math.max(0, opensAtMs - clock.nowMs);
  void ask('a', { deadlineAtMs: 60_000 });
  expect([sent, jest.getTimerCount()]).toEqual([[], 1]);
  // The timer is early.
  clock.nowMs = 0.009;
  await jest.advanceTimersByTimeAsync(1);
  expect([sent, jest.getTimerCount()]).toEqual([[], 1]);
  clock.nowMs = 0.01;
  await jest.advanceTimersByTimeAsync(1);
  expect(sent).toEqual(['a']);
});

it('entering, starting and leaving cost as much when thousands wait as when few do', async () => {
  const gateCallsFor = async (count: number) => {
    const { queue, line, ask, endAll, sent } = newQueue(16);
    const organizations = Array.from({ length: 20 }, (_, index) => caller(`${index}`));
    const leaving = Array.from({ length: count }, () => new AbortController());
    for (const [index, { signal }] of leaving.entries()) void ask(`${index}`, { ...organizations[index % 20], signal });
    expect(queue.queued).toBe(count - 16);
    const entered = line.asked / count;
    // Every other one leaves, and the rest is served.
    for (const [index, controller] of leaving.entries()) if (index >= 16 && index % 2 === 0) controller.abort();
    await endAll();
    expect([queue.queued, queue.running, sent.length]).toEqual([0, 0, count / 2 + 8]);
    return { entered, all: line.asked / count };
  };
  const [few, many] = [await gateCallsFor(48), await gateCallsFor(4_800)];
  expect(many.entered).toBeLessThanOrEqual(4);
  expect(many.all).toBeLessThanOrEqual(Math.max(8, few.all * 1.5));
});

describe('whatever happens', () => {
  const event = fc.record({
    do: fc.constantFrom('start', 'start', 'start', 'continue', 'end', 'fail', 'abort', 'share', 'gate', 'shut', 'wait'),
    which: fc.nat(40),
    /** Of a line or of the clock, with fractions. */
    ms: fc.oneof(fc.double({ min: 0, max: 2, noNaN: true }), fc.double({ min: 0, max: 1_500, noNaN: true })),
  });

  it('what may be sent is sent, a timer is armed while anything waits, and everything ends', async () => {
    const run = async (
      slots: number,
      events: readonly { do: string; which: number; ms: number }[],
      clockSpeed: number,
    ) => {
      // Timers are a little earlier than the clock says, as they are in Node.
      const now = () => performance.now() * clockSpeed;
      const { queue, open, ask, running, sent, endAll } = newQueue(slots, now);
      const lines = [1, 2, 4].map((max) => ({ ...open(max), opensAtMs: 0 }));
      for (const line of lines) line.line.startWait = () => Math.max(0, line.opensAtMs - now());
      const requests: { leaving: AbortController; context: { background: boolean }; attempt: Attempt }[] = [];
      const ended: Promise<unknown>[] = [];
      const callers = ['a', 'a', 'b', 'c'].map((organizationId) => ({ organizationId, fairnessKey: {} }));
      const check = () => {
        const jobsMax = Math.max(1, Math.floor(slots * 0.75));
        expect(queue.running).toBeLessThanOrEqual(slots);
        expect([...running.values()].filter(({ isJob }) => isJob).length).toBeLessThanOrEqual(jobsMax);
        // One that a call waits for too is a job's until the next review.
        const mayRunJob = [...running.keys()].filter((name) => name.startsWith('job')).length < jobsMax;
        if (queue.queued > 0) expect(jest.getTimerCount()).toBe(1);
        for (const { line, opensAtMs } of lines) {
          expect(line.slots.running).toBeLessThanOrEqual(line.slots.max);
          if (queue.running === slots || line.slots.running === line.slots.max) continue;
          expect(line.queues['started-call'].size).toBe(0);
          if (mayRunJob) expect(line.queues['started-job'].size).toBe(0);
          if (opensAtMs > now()) continue;
          expect(line.queues.call.size).toBe(0);
          if (mayRunJob) expect(line.queues.job.size).toBe(0);
        }
      };
      for (const { do: what, which, ms } of events) {
        const line = lines[which % lines.length];
        const request = requests[which % Math.max(1, requests.length)];
        if (line && (what === 'start' || what === 'continue')) {
          const attempt = new Attempt('a video');
          attempt.started = what === 'continue';
          const leaving = new AbortController();
          // Some have deadlines that pass.
          const deadlineAtMs = which % 5 === 0 ? now() + ms : Infinity;
          const ofCaller = { ...callers[which % callers.length], background: which % 2 === 0 };
          const context = { ...ofCaller, signal: leaving.signal, deadlineAtMs };
          requests.push({ leaving, context, attempt });
          const name = `${context.background ? 'job' : 'call'} ${requests.length}`;
          ended.push(ask(name, context, { line: line.line, attempt }).catch(() => null));
        } else if (what === 'end') await [...running.values()][which % Math.max(1, running.size)]?.end();
        else if (what === 'fail') await [...running.values()][which % Math.max(1, running.size)]?.fail();
        else if (what === 'abort') request?.leaving.abort(new Error('left'));
        else if (what === 'share' && request && !request.attempt.started) request.context.background = false;
        else if (what === 'gate' && line) {
          line.opensAtMs = which % 4 === 0 ? Infinity : now() + ms;
          queue.startNext();
        } else if (what === 'shut' && line) {
          line.line.shut = { kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: 1 };
          line.line.refuseWaiting();
          expect(line.line.waiting).toBe(0);
          line.line.shut = null;
        } else if (what === 'wait') jest.advanceTimersByTime(Math.ceil(ms));
        await settle();
        check();
      }
      for (const line of lines) line.opensAtMs = 0;
      queue.startNext();
      while (running.size > 0) await endAll();
      await Promise.all(ended);
      expect([queue.running, queue.queued, jest.getTimerCount()]).toEqual([0, 0, 0]);
      expect(sent.length).toBeLessThanOrEqual(requests.length);
    };
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5 }),
        fc.array(event, { maxLength: 60 }),
        fc.constantFrom(1, 0.999, 0.97),
        run,
      ),
    );
  });
});
