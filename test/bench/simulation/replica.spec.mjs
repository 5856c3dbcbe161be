import { describe, expect, it } from '@jest/globals';
import { Agenda, FairServers } from './queues.mjs';
import { arrivalsAtRandom, randomFrom } from './random.mjs';
import { simulate } from './replica.mjs';

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The mean wait for one of `servers`, after Erlang: arrivals at random, exponential service of the given mean. */
function erlangWait(servers, perSecond, serviceSeconds) {
  const offered = perSecond * serviceSeconds;
  let blocking = 1;
  for (let server = 1; server <= servers; server += 1) blocking = (offered * blocking) / (server + offered * blocking);
  const waiting = blocking / (1 - (offered / servers) * (1 - blocking));
  return (waiting * serviceSeconds) / (servers - offered);
}

/** A call that is one request and nothing else. */
const ONE_REQUEST = {
  ...{ videos: 0, channelRequests: 1, sideRequests: 0, cpuSecondsPerCall: 0 },
  ...{ deadlineSeconds: Infinity, latencySigma: null, latencySeconds: 1 },
};

describe('the simulation of a replica', () => {
  it.each([
    [1, 0.5],
    [1, 0.8],
    [4, 0.7],
    [16, 0.8],
    [16, 0.9],
  ])('waits for %i slots at a load of %f as the formula for M/M/c says', (slots, load) => {
    const perSecond = slots * load;
    const arrivals = arrivalsAtRandom(randomFrom(7), perSecond, 40_000 / perSecond);
    const { waits, slotsBusy } = simulate({ ...ONE_REQUEST, slots, arrivals });
    const expected = erlangWait(slots, perSecond, 1);
    expect(Math.abs(mean(waits) / expected - 1)).toBeLessThan(0.08);
    expect(slotsBusy).toBeCloseTo(load, 2);
  });

  it('waits for the thread as the formula for M/D/1 says, when every call is cached', () => {
    const load = 0.7;
    const arrivals = arrivalsAtRandom(randomFrom(7), load, 40_000);
    const { threadWaits } = simulate({ coldShare: 0, cpuSecondsCached: 1, arrivals });
    expect(Math.abs(mean(threadWaits) / (load / (2 * (1 - load))) - 1)).toBeLessThan(0.05);
  });

  it('takes for one call alone what its requests and its work add up to', () => {
    const settings = { videos: 32, slots: 16, latencySeconds: 0.1, latencySigma: 0, sideRequests: 0 };
    const { calls } = simulate({ ...settings, cpuSecondsPerVideo: 0, cpuSecondsPerCall: 0.01, arrivals: [0] });
    // Two for the channel, and two rounds of sixteen videos of two requests each.
    expect(calls[0].seconds).toBeCloseTo(2 * 0.1 + 0.01 + 2 * 2 * 0.1, 9);
  });

  it('gives up what is missing at the deadline, and has its slots free for the next call', () => {
    const settings = { videos: 4, slots: 2, latencySeconds: 1, latencySigma: 0, sideRequests: 0, deadlineSeconds: 5 };
    const { calls } = simulate({ ...settings, cpuSecondsPerVideo: 0, cpuSecondsPerCall: 0, arrivals: [0, 5] });
    // Two for the channel, two for the first pair of videos, and the second pair has half of what it needs.
    expect(calls.map(({ seconds, late }) => [seconds, late])).toEqual([
      [5, 2],
      [5, 2],
    ]);
  });

  it('lets a short caller pass a long one: each has its turn', () => {
    const agenda = new Agenda();
    const servers = new FairServers(agenda, 1);
    const [long, short, served] = [{}, {}, []];
    for (let piece = 1; piece <= 4; piece += 1) servers.serve(long, 1, () => served.push(`long ${piece}`));
    servers.serve(short, 1, () => served.push('short'));
    agenda.run();
    expect(served).toEqual(['long 1', 'long 2', 'short', 'long 3', 'long 4']);
  });

  it('gives the same figures for the same seed', () => {
    const arrivals = arrivalsAtRandom(randomFrom(3), 1, 60);
    const run = () => simulate({ seed: 3, arrivals }).calls;
    expect(run()).toEqual(run());
  });
});
