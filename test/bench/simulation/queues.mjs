/** What will happen, the earliest first; of two at the same time the one that was planned first. */
export class Agenda {
  #heap = [];
  #planned = 0;
  now = 0;

  at(time, action) {
    const entry = { time, order: this.#planned++, action };
    let index = this.#heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(entry, this.#heap[parent])) break;
      this.#heap[index] = this.#heap[parent];
      index = parent;
    }
    this.#heap[index] = entry;
  }

  in(delay, action) {
    this.at(this.now + delay, action);
  }

  run() {
    for (let next = this.#take(); next; next = this.#take()) {
      this.now = next.time;
      next.action();
    }
  }

  #take() {
    const [first] = this.#heap;
    const last = this.#heap.pop();
    if (!first || this.#heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && isBefore(this.#heap[child + 1], this.#heap[child])) child += 1;
      if (!isBefore(this.#heap[child], last)) break;
      this.#heap[index] = this.#heap[child];
      index = child;
    }
    this.#heap[index] = last;
    return first;
  }
}

function isBefore(one, other) {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}

/**
 * So many servers, and callers who wait for them: a server that becomes free goes to the caller who has the fewest, those
 * with as few by turns, and the work of one keeps its order. So the service shares its outgoing requests. With one caller
 * for each piece of work it is a plain queue.
 */
export class FairServers {
  #agenda;
  #servers;
  #busy = 0;
  /** The work that waits, by caller; the order of the keys is whose turn it is. */
  #waiting = new Map();
  waits = [];
  busySeconds = 0;

  constructor(agenda, servers) {
    this.#agenda = agenda;
    this.#servers = servers;
  }

  /** Asks for `seconds` of a server; `done` is called when they are over, unless the caller has left by then. */
  serve(caller, seconds, done) {
    const work = { caller, seconds, done, since: this.#agenda.now };
    if (this.#busy < this.#servers) return this.#begin(work);
    const waiting = this.#waiting.get(caller);
    if (waiting) waiting.push(work);
    else this.#waiting.set(caller, [work]);
  }

  /** What a caller still waits for is forgotten; what is being served is given up, and its servers are free. */
  leave(caller) {
    this.#waiting.delete(caller);
    const serving = caller.serving ?? [];
    caller.serving = new Set();
    for (const work of serving) this.#end(work);
  }

  #begin(work) {
    this.#busy += 1;
    this.waits.push(this.#agenda.now - work.since);
    work.begunAt = this.#agenda.now;
    (work.caller.serving ??= new Set()).add(work);
    this.#agenda.in(work.seconds, () => {
      if (!work.caller.serving.delete(work)) return;
      this.#end(work);
      work.done();
    });
  }

  #end(work) {
    this.#busy -= 1;
    this.busySeconds += this.#agenda.now - work.begunAt;
    const caller = this.#next();
    if (!caller) return;
    const waiting = this.#waiting.get(caller);
    const first = waiting.shift();
    this.#waiting.delete(caller);
    if (waiting.length > 0) this.#waiting.set(caller, waiting);
    this.#begin(first);
  }

  #next() {
    let next;
    let fewest = Infinity;
    for (const caller of this.#waiting.keys()) {
      const serving = caller.serving?.size ?? 0;
      if (serving === 0) return caller;
      if (serving < fewest) [next, fewest] = [caller, serving];
    }
    return next;
  }
}
