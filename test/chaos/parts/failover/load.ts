import { setTimeout as sleep } from 'node:timers/promises';
import type { Customer, Service, ServiceResponse } from '../../harness/service.js';
import { at, brokenIdentities, codeOf, readTranscripts } from '../../harness/transcripts.js';
import { until } from '../../harness/until.js';

export const VIDEOS = 3;
const CALLERS = 6;
const PAUSE_MS = 20;
/** The fake YouTube has channels of up to this many videos, of which a call reads the newest. */
const CHANNEL_VIDEOS_MAX = 9_000;

let channels = 0;

/** The path of a call for `VIDEOS` videos that were not requested before. */
export function uncachedPath(): string {
  channels += 1;
  const videos = VIDEOS + (channels % CHANNEL_VIDEOS_MAX);
  const segments = 1 + Math.floor(channels / CHANNEL_VIDEOS_MAX);
  return `/channels/@bench-${videos}x${segments}/transcripts?limit=${VIDEOS}`;
}

/** The results of the calls since the load was started. */
export interface LoadEnd {
  calls: number;
  /** 503 `service_unavailable`. */
  refused: number;
  /** Calls that were cut off. */
  cutOff: number;
  /** Calls that found no replica listening. */
  unreachable: number;
  /** Transcripts charged according to the responses. */
  fetched: number;
  slowestMs: number;
  wrong: string[];
}

/** Callers that request channels which are not cached, from the replicas in turn, until they are stopped. */
export class Load {
  private readonly end: LoadEnd = {
    calls: 0,
    refused: 0,
    cutOff: 0,
    unreachable: 0,
    fetched: 0,
    slowestMs: 0,
    wrong: [],
  };
  /** When each complete response ended. */
  private readonly servedAtMs: number[] = [];
  private readonly callers: Promise<unknown>;
  private stopped = false;

  /** @param replicas read at each call, so that one can be replaced */
  constructor(
    private readonly replicas: readonly Service[],
    private readonly customer: Customer,
  ) {
    this.callers = Promise.all(Array.from({ length: CALLERS }, (_, caller) => this.caller(caller)));
  }

  /** Waits until this many further calls have complete responses. */
  async served(count: number): Promise<void> {
    const target = this.servedAtMs.length + count;
    await until(`${count} calls have complete responses`, () => this.servedAtMs.length >= target, 60_000);
  }

  async stop(): Promise<LoadEnd> {
    this.stopped = true;
    await this.callers;
    return this.end;
  }

  /** The longest time after a moment in which no call got a complete response. */
  longestGapMs(sinceMs: number): number {
    const times = [sinceMs, ...this.servedAtMs.filter((time) => time > sinceMs)];
    return Math.max(0, ...times.slice(1).map((time, index) => time - (times[index] ?? time)));
  }

  private async caller(offset: number): Promise<void> {
    for (let turn = offset; !this.stopped; turn += 1) {
      const service = this.replicas[turn % this.replicas.length];
      if (!service) return;
      this.end.calls += 1;
      const response = await service
        .get(uncachedPath(), this.customer.key, { timeoutMs: 60_000 })
        .catch((error: unknown) => (at(error, 'code') === 'ECONNREFUSED' ? 'unreachable' : 'cutOff'));
      if (typeof response === 'string') this.end[response] += 1;
      else this.count(response);
      if (typeof response === 'string' || response.status !== 200) await sleep(PAUSE_MS);
    }
  }

  private count(response: ServiceResponse): void {
    const { end } = this;
    if (response.status === 200 && !response.whole) {
      end.cutOff += 1;
      return;
    }
    end.slowestMs = Math.max(end.slowestMs, response.ms);
    const reported = readTranscripts(response);
    const after = `after ${response.ms.toFixed(0)} ms`;
    if (response.status === 200 && reported) {
      this.servedAtMs.push(performance.now());
      end.fetched += reported.summary.fetched;
      end.wrong.push(...brokenIdentities(reported));
      if (reported.summary.succeeded !== VIDEOS) {
        end.wrong.push(`${reported.summary.succeeded} of ${VIDEOS} succeeded ${after}`);
      }
    } else if (response.status === 503 && codeOf(response) === 'service_unavailable') end.refused += 1;
    else end.wrong.push(`responded ${response.status} ${codeOf(response)} ${after}`);
  }
}
