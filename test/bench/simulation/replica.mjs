import { Agenda, FairServers } from './queues.mjs';
import { exponential, logNormal, randomFrom } from './random.mjs';

/**
 * A discrete-event model of one replica. A call for an uncached channel requests the channel, one request after
 * another, and then for its videos, as many at a time as there are slots: each video's requests follow one another, each
 * takes a slot for its round trip, and its response is processed by the single thread. A cached call needs the thread only. At
 * the deadline a call gives up its missing videos.
 */
export const DEFAULTS = {
  seed: 1,
  /** UPSTREAM_CONCURRENCY. */
  slots: 16,
  /** The median of a round trip, and the spread of its logarithm; null: exponential, with this as the mean. */
  latencySeconds: 0.2,
  latencySigma: 0.5,
  videos: 25,
  /** Requests that follow one another before the videos are known, and for each video. */
  channelRequests: 2,
  videoRequests: 2,
  /** Requests for the channel beside those, for which no video waits. */
  sideRequests: 2,
  cpuSecondsPerVideo: 0.005,
  cpuSecondsPerCall: 0.005,
  cpuSecondsCached: 0.003,
  coldShare: 1,
  /** REQUEST_DEADLINE_SECONDS. */
  deadlineSeconds: 45,
};

/**
 * @param {Partial<typeof DEFAULTS> & { arrivals: number[] }} options `arrivals` in seconds, ascending
 * @returns each call's arrival, seconds, late videos; every wait for a slot; how busy slots and thread were
 */
export function simulate(options) {
  const settings = { ...DEFAULTS, ...options };
  const agenda = new Agenda();
  const random = randomFrom(settings.seed);
  const slots = new FairServers(agenda, settings.slots);
  const thread = new FairServers(agenda, 1);
  const calls = [];
  // Each arrival plans the next, so that the agenda stays short.
  const arrive = (index) => {
    const arrivedAt = settings.arrivals[index];
    if (arrivedAt === undefined) return;
    agenda.at(arrivedAt, () => {
      arrive(index + 1);
      const cold = random() < settings.coldShare;
      const call = { arrivedAt, cold, missing: cold ? settings.videos : 0, late: 0, over: false };
      calls.push(call);
      const end = () => {
        call.seconds = agenda.now - arrivedAt;
        call.over = true;
      };
      if (!cold) return thread.serve({}, settings.cpuSecondsCached, end);
      new ColdCall({ settings, agenda, random, slots, thread }, call, end).begin();
    });
  };
  arrive(0);
  agenda.run();
  // Not the agenda's last event, which is the deadline of a completed call.
  const seconds = calls.reduce((last, call) => Math.max(last, call.arrivedAt + call.seconds), 0);
  return {
    calls,
    waits: slots.waits,
    threadWaits: thread.waits,
    seconds,
    slotsBusy: slots.busySeconds / (settings.slots * seconds),
    threadBusy: thread.busySeconds / seconds,
  };
}

class ColdCall {
  constructor(replica, call, end) {
    Object.assign(this, { ...replica, call, end, toStart: replica.settings.videos, caller: {} });
  }

  begin() {
    const { settings, agenda, call } = this;
    if (Number.isFinite(settings.deadlineSeconds)) agenda.in(settings.deadlineSeconds, () => this.giveUp());
    for (let side = 0; side < settings.sideRequests; side += 1) this.ask(1, () => undefined);
    this.ask(settings.channelRequests, () => {
      if (call.missing === 0) return this.work(settings.cpuSecondsPerCall, () => this.finish());
      this.work(settings.cpuSecondsPerCall, () => {
        for (let started = 0; started < settings.slots; started += 1) this.nextVideo();
      });
    });
  }

  nextVideo() {
    if (this.toStart === 0) return;
    this.toStart -= 1;
    this.ask(this.settings.videoRequests, () => {
      this.work(this.settings.cpuSecondsPerVideo, () => {
        this.call.missing -= 1;
        if (this.call.missing === 0) this.finish();
        else this.nextVideo();
      });
    });
  }

  /** Requests that follow one another, each a round trip in a slot. */
  ask(requests, done) {
    if (requests === 0) return done();
    this.slots.serve(this.caller, this.latency(), () => this.ask(requests - 1, done));
  }

  work(seconds, done) {
    if (seconds === 0) return done();
    // Responses are processed in order of arrival, for all callers.
    this.thread.serve({}, seconds, () => this.call.over || done());
  }

  latency() {
    const { latencySeconds, latencySigma } = this.settings;
    return latencySigma === null
      ? exponential(this.random, latencySeconds)
      : logNormal(this.random, latencySeconds, latencySigma);
  }

  giveUp() {
    if (this.call.over) return;
    this.call.late = this.call.missing;
    this.slots.leave(this.caller);
    this.end();
  }

  finish() {
    if (!this.call.over) this.end();
  }
}
