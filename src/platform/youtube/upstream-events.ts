import { Injectable } from '@nestjs/common';
import {
  type EgressResult,
  type UpstreamObserver,
  type UpstreamRequest,
  type UpstreamState,
  UpstreamTraffic,
} from '../upstream-traffic.js';

/** How often an event occurred between this process and the platform. */
export interface UpstreamCount {
  /** What was requested: `player`, `uploads`, `captions`, … */
  kind: string;
  /** The InnerTube client, or `-` where there is none. */
  client: string;
  /** How it ended: `ok`, `blocked:captcha`, `timeout`, `http-500`, … */
  outcome: string;
  count: number;
}

const NOTHING_YET: UpstreamState = { inFlight: 0, queued: 0, inFlightMax: 0, egresses: [], verdicts: [] };

/** Counts events for the smoke test and passes them on to observers. All labels come from small, closed sets. */
@Injectable()
export class UpstreamEvents extends UpstreamTraffic {
  private readonly counts = new Map<string, UpstreamCount>();
  private readonly observers: UpstreamObserver[] = [];
  private readState = (): UpstreamState => NOTHING_YET;

  /** A finished request. */
  request(request: UpstreamRequest): void {
    this.add(request.kind, request.client, request.outcome);
    for (const observer of this.observers) observer.request(request);
  }

  /** Any other event that is worth counting. */
  count(kind: string, client: string, outcome: string): void {
    this.add(kind, client, outcome);
    for (const observer of this.observers) observer.observed(kind, client, outcome);
  }

  egress(verdict: EgressResult): void {
    for (const observer of this.observers) observer.egress(verdict);
  }

  snapshot(): UpstreamCount[] {
    return [...this.counts.values()].map((entry) => ({ ...entry }));
  }

  override observe(observer: UpstreamObserver): void {
    this.observers.push(observer);
  }

  override state(): UpstreamState {
    return this.readState();
  }

  /** Sets the source of `state()`. */
  readStateFrom(read: () => UpstreamState): void {
    this.readState = read;
  }

  private add(kind: string, client: string, outcome: string): void {
    const key = `${kind}\n${client}\n${outcome}`;
    const entry = this.counts.get(key);
    if (entry) entry.count += 1;
    else this.counts.set(key, { kind, client, outcome, count: 1 });
  }
}
