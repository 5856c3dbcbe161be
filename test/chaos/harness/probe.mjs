import { EventEmitter, getEventListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector';

// Loaded into a service under test: reports its resources over IPC, so that a leak is visible from outside, sets its clock,
// advances its monotonic clock, so that the tests need not wait for pauses and expiry, and fills its memory.
if (process.send) {
  let skippedMs = 0;
  const now = performance.now.bind(performance);
  performance.now = () => now() + skippedMs;
  const filled = [];
  process.on('message', ({ probe, offsetMs, ms, bytes }) => {
    if (probe === 'clock') {
      setClock(offsetMs);
      process.send({ probe });
      return;
    }
    if (probe === 'skip') {
      skippedMs += ms;
      process.send({ probe });
      return;
    }
    if (probe === 'fill') {
      filled.push(Buffer.alloc(bytes, 1));
      process.send({ probe });
      return;
    }
    if (probe === 'listeners') {
      process.send({ probe, ...countListeners() });
      return;
    }
    if (probe !== 'resources') return;
    globalThis.gc?.();
    const held = {};
    for (const name of process.getActiveResourcesInfo()) held[name] = (held[name] ?? 0) + 1;
    const { rss, heapUsed, external } = process.memoryUsage();
    // `process.resourceUsage()` would include the peak of the parent, which Linux passes on to a new program.
    const peakRss = Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024;
    process.send({ probe, held, rss, peakRss, heapUsed, external });
  });
  // The channel must not keep the service alive, and the service must not outlive the chaos tests.
  process.channel.unref();
  process.on('disconnect', () => process.exit(99));
}

const RealDate = Date;

/** Node programs read the time of day from `Date` only; measured durations do not depend on it. */
function setClock(offsetMs) {
  globalThis.Date = class Date extends RealDate {
    constructor(...given) {
      super(...(given.length === 0 ? [RealDate.now() + offsetMs] : given));
    }
    static now() {
      return RealDate.now() + offsetMs;
    }
  };
}

const COUNTERS = Symbol.for('chaos.listeners');

/** Counts the event listeners of every live emitter and abort signal, which only the inspector can enumerate. */
function countListeners() {
  const session = new Session();
  session.connect();
  globalThis[COUNTERS] = { EventEmitter, countOfEmitters, countOfSignals };
  try {
    const counters = `globalThis[Symbol.for('chaos.listeners')]`;
    const count = (prototype, counter) => {
      const { objectId } = post(session, 'Runtime.evaluate', { expression: prototype }).result;
      const { objects } = post(session, 'Runtime.queryObjects', { prototypeObjectId: objectId });
      const functionDeclaration = `function () { return ${counters}.${counter}(this); }`;
      const call = { objectId: objects.objectId, functionDeclaration, returnByValue: true };
      return post(session, 'Runtime.callFunctionOn', call).result.value;
    };
    const all = [
      count(`${counters}.EventEmitter.prototype`, 'countOfEmitters'),
      count('AbortSignal.prototype', 'countOfSignals'),
    ];
    const most = all.reduce((one, other) => (other.most > one.most ? other : one));
    return { total: all.reduce((sum, { total }) => sum + total, 0), most: most.most, where: most.where };
  } finally {
    delete globalThis[COUNTERS];
    session.disconnect();
  }
}

/** A session of the same thread responds before `post` returns. */
function post(session, method, parameters) {
  let answer;
  session.post(method, parameters, (error, result) => {
    if (error) throw new Error(`${method}: ${error.message}`);
    answer = result;
  });
  if (answer?.exceptionDetails) throw new Error(`${method}: ${JSON.stringify(answer.exceptionDetails)}`);
  return answer;
}

function countOfEmitters(emitters) {
  return summed(
    Array.from(emitters).flatMap((emitter) =>
      namesOf(emitter).map((event) => ({
        where: `${emitter.constructor?.name} "${String(event)}"`,
        count: emitter.listenerCount(event),
      })),
    ),
  );
}

/** The result includes prototypes of emitters, which have no listeners. */
function namesOf(emitter) {
  return Object.hasOwn(emitter, '_events') && emitter._events ? emitter.eventNames() : [];
}

function countOfSignals(signals) {
  return summed(
    Array.from(signals, (signal) => {
      // The result includes the prototype, which is not a signal.
      const count = Object.hasOwn(signal, 'constructor') ? 0 : getEventListeners(signal, 'abort').length;
      return { where: 'AbortSignal "abort"', count };
    }),
  );
}

function summed(counts) {
  const most = counts.reduce((one, other) => (other.count > one.count ? other : one), { where: 'none', count: 0 });
  return { total: counts.reduce((sum, { count }) => sum + count, 0), most: most.count, where: most.where };
}
