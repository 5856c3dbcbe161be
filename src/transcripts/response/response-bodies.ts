import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { TranscriptDelivery, type EntryOrder } from '../transcript-delivery.js';
import { countOutcome, emptySummary, type Summary, type TranscriptsEvent } from '../transcript-events.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import type { CallPlan } from '../transcript-planner.js';
import { AssembledBodies, type BodySlice } from './assembled-bodies.js';
import { BufferedTexts, ResponseMemory } from './response-memory.js';
import { serializeJson, serializeNdjson, writeAssembled, writeResponse, type Chunk } from './response-writer.js';

interface Format {
  readonly serialize: (events: AsyncIterable<TranscriptsEvent>) => AsyncIterable<Chunk>;
  readonly order: EntryOrder;
}

const FORMATS = {
  json: { serialize: serializeJson, order: 'listed' },
  ndjson: { serialize: serializeNdjson, order: 'as-finished' },
} as const satisfies Record<string, Format>;

export type BodyFormat = keyof typeof FORMATS;
export type BodyEncoding = 'gzip' | 'identity';

/** The body of a response, to be written once. */
export interface ResponseBody {
  /** Counts of the entries that were written so far. */
  readonly summary: Summary;
  /** Writes no faster than the reader takes it. Throws only for a bug, after which the connection is destroyed. */
  write(response: Response): Promise<void>;
}

/** Makes the bodies of HTTP responses: from an assembled one if nothing of it has changed, else from a delivery. */
@Injectable()
export class ResponseBodies {
  constructor(
    private readonly delivery: TranscriptDelivery,
    private readonly assembled: AssembledBodies,
    private readonly memory: ResponseMemory,
    private readonly metrics: TranscriptMetrics,
  ) {}

  /** Starts to fetch what the plan lacks. Must be followed by `write`. */
  open(plan: CallPlan, format: BodyFormat, encoding: BodyEncoding): ResponseBody {
    const form = `${format} ${encoding}`;
    return this.known(plan, form, encoding) ?? this.delivered(plan, format, encoding);
  }

  /** The body if it is assembled and its reader may hold it in memory. */
  private known(plan: CallPlan, form: string, encoding: BodyEncoding): ResponseBody | undefined {
    const slices = this.assembled.find(plan, form);
    if (!slices) return undefined;
    const buffered = new BufferedTexts(this.memory);
    for (const { bytes } of slices) {
      if (!buffered.mayPin(bytes)) {
        buffered.close();
        return undefined;
      }
      buffered.add(bytes, 'passing');
    }
    // Nothing is fetched, and a slow reader does not retain the texts of the plan.
    plan.call.finish();
    plan.videos.length = 0;
    plan.order.length = 0;
    const summary = emptySummary();
    let sent: Buffer | undefined;
    const count = ({ bytes, outcomes }: BodySlice): void => {
      for (const [outcome, entries] of outcomes) {
        countOutcome(summary, outcome, entries);
        this.metrics.countEntries(outcome, entries);
      }
      if (sent) buffered.release(sent);
      sent = bytes;
    };
    return {
      summary,
      write: async (response) => {
        try {
          await writeAssembled(response, slices, encoding, count);
        } finally {
          buffered.close();
        }
      },
    };
  }

  private delivered(plan: CallPlan, format: BodyFormat, encoding: BodyEncoding): ResponseBody {
    const recording = this.assembled.record(plan, `${format} ${encoding}`);
    const delivery = this.delivery.start(plan, encoding === 'gzip' ? 'deflated' : 'json');
    const { serialize, order }: Format = FORMATS[format];
    return {
      summary: delivery.summary,
      write: async (response) => {
        const events = delivery.events(order);
        try {
          await writeResponse(response, serialize(recording?.watch(events) ?? events), encoding, recording);
        } finally {
          recording?.cancel();
        }
      },
    };
  }
}
