import { Injectable } from '@nestjs/common';

/** How often something happened between this process and the platform. */
export interface UpstreamCount {
  /** What was asked for: `player`, `uploads`, `captions`, … */
  kind: string;
  /** The InnerTube client, or `-` where there is none. */
  client: string;
  /** How it ended: `ok`, `blocked:captcha`, `timeout`, `http-500`, … */
  outcome: string;
  count: number;
}

/** Counts what happened with the platform, for metrics and for the smoke test. The words are a small, closed set. */
@Injectable()
export class UpstreamEvents {
  private readonly counts = new Map<string, UpstreamCount>();

  count(kind: string, client: string, outcome: string): void {
    const key = `${kind}\n${client}\n${outcome}`;
    const entry = this.counts.get(key);
    if (entry) entry.count += 1;
    else this.counts.set(key, { kind, client, outcome, count: 1 });
  }

  snapshot(): UpstreamCount[] {
    return [...this.counts.values()].map((entry) => ({ ...entry }));
  }
}
