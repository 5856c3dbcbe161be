/** Scheduled events, the earliest first; of two at the same time the one scheduled first. */
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
 * A number of servers shared by callers: a free server is given to the caller with the fewest, those
 * with equally few in turn, and the work of one caller stays in order, as the service shares its outgoing requests. With one caller
 * per piece of work it is a plain queue.
 */
export class FairServers {
  #agenda;
  #servers;
  #busy = 0;
  /** Waiting work by caller; the order of the keys is the order of turns. */
  #waiting = new Map();
  waits = [];
  busySeconds = 0;

  constructor(agenda, servers) {
    this.#agenda = agenda;
    this.#servers = servers;
  }

  /** Requests `seconds` of a server; `done` is called afterwards, unless the caller has left by then. */
  serve(caller, seconds, done) {
    const work = { caller, seconds, done, since: this.#agenda.now };
    if (this.#busy < this.#servers) return this.#begin(work);
    const waiting = this.#waiting.get(caller);
    if (waiting) waiting.push(work);
    else this.#waiting.set(caller, [work]);
  }

  /** Removes a caller: its waiting work is dropped, its running work is aborted, and its servers are free. */
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
