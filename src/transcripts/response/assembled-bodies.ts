import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Gauge, Registry } from 'prom-client';
import type { CachedOutcome } from '../cache/transcript-cache.js';
import { metadataOf, outcomeOf, type Entry, type EntryOutcome, type TranscriptsEvent } from '../transcript-events.js';
import type { CallPlan, PlannedVideo } from '../transcript-planner.js';
import { ResponseMemory } from './response-memory.js';

/** The bodies use at most this share of the response memory, and those that are being recorded as much again. */
const BODIES_SHARE = 8;
/** A body is recorded when its call is repeated within this time. */
const REPEATED_WITHIN_MS = 60_000;
const REPEATED_MAX = 1_000;
const RECORDINGS_MAX = 2;
/** A recording ends when its reader takes longer, so that it does not keep others from being recorded. */
const RECORDING_MS_MAX = 10_000;
/**
 * Approximate size of one write of an assembled body. Linux buffers at most 4 MB of a connection by default, and a few large
 * writes cost half as much per byte as many of one megabyte.
 */
const SLICE_BYTES = 4 * 1024 * 1024;
/** Approximate memory of an entry's upload, details and metadata, which the body keeps alive. */
const ENTRY_BYTES = 2_048;

/** A part of a body, and the entries that count when it is sent. */
export interface BodySlice {
  readonly bytes: Buffer;
  readonly outcomes: ReadonlyMap<EntryOutcome, number>;
}

interface AssembledBody {
  readonly slices: readonly BodySlice[];
  readonly sources: readonly EntrySource[];
  readonly bytes: number;
}

/** What an entry is made of. */
interface EntrySource {
  readonly upload: PlannedVideo['upload'];
  readonly outcome: CachedOutcome;
}

type PlanOfBody = Pick<CallPlan, 'header' | 'order' | 'languages'>;

/**
 * The last bodies of responses whose entries all came from the cache, as they were written. A repeated call is planned
 * like any other; when its plan consists of the same cached values in the same order, its body is the same too.
 */
@Injectable()
export class AssembledBodies {
  private readonly bodies: LRUCache<string, AssembledBody>;
  private readonly called = new LRUCache<string, true>({ max: REPEATED_MAX, ttl: REPEATED_WITHIN_MS });
  private readonly recordings = new Map<string, BodyRecording>();

  constructor(
    private readonly memory: ResponseMemory,
    registry: Registry,
  ) {
    const bodies = new LRUCache<string, AssembledBody>({
      maxSize: Math.max(1, Math.floor(memory.bytesMax / BODIES_SHARE)),
      sizeCalculation: ({ bytes, sources }) => bytes + sources.length * ENTRY_BYTES,
    });
    this.bodies = bodies;
    memory.onHalfFull = () => bodies.clear();
    new Gauge({
      name: 'ct_assembled_bodies_bytes',
      help: 'Size of the bodies of repeated responses that are stored in memory.',
      registers: [registry],
      collect() {
        this.set(bodies.calculatedSize);
      },
    });
  }

  /** The slices of the body of this plan; undefined when it is not known. */
  find(plan: PlanOfBody, form: string): BodySlice[] | undefined {
    const key = keyOf(plan, form);
    const body = this.bodies.get(key);
    if (!body) return undefined;
    const { order } = plan;
    const { sources, slices } = body;
    if (sources.length === order.length && sources.every((source, index) => isFrom(source, order[index])))
      return [...slices];
    this.bodies.delete(key);
    return undefined;
  }

  /** Starts to record the body of this plan if its call was repeated, lists videos of the platform, and all of its entries are cached. */
  record(plan: PlanOfBody, form: string): BodyRecording | undefined {
    const { header, order } = plan;
    // Each call makes new uploads of the videos that it names, so that its body would never be found again.
    if (header.type === 'videos') return undefined;
    if (order.length === 0 || order.some(({ outcome }) => !outcome)) return undefined;
    const key = keyOf(plan, form);
    if (!this.called.get(key)) {
      this.called.set(key, true);
      return undefined;
    }
    for (const recording of this.recordings.values()) recording.cancelIfLate();
    if (!this.memory.isHalfEmpty || this.recordings.size >= RECORDINGS_MAX || this.recordings.has(key))
      return undefined;
    const sources = order.flatMap(({ upload, outcome }) =>
      outcome ? [{ upload, outcome: withoutText(outcome) }] : [],
    );
    const recording = new BodyRecording(sources, this.memory, (body) => {
      this.recordings.delete(key);
      if (body && this.memory.isHalfEmpty) this.bodies.set(key, body);
    });
    this.recordings.set(key, recording);
    return recording;
  }
}

/** Copies a body while it is written, and checks that each entry is the planned one. */
export class BodyRecording {
  private readonly startedAtMs = performance.now();
  private readonly slices: BodySlice[] = [];
  private entries = 0;
  private parts: Buffer[] = [];
  private partsBytes = 0;
  private outcomes = new Map<EntryOutcome, number>();
  private bytes = 0;
  private ended = false;

  /** @param end called once, with the body, or with nothing when it was not recorded completely */
  constructor(
    private readonly sources: readonly EntrySource[],
    private readonly memory: ResponseMemory,
    private readonly end: (body: AssembledBody | undefined) => void,
  ) {}

  /** Passes on the events of the response. */
  async *watch(events: AsyncIterable<TranscriptsEvent>): AsyncGenerator<TranscriptsEvent, void, undefined> {
    for await (const event of events) {
      if (event.type === 'result') this.addEntry(event.entry);
      yield event;
    }
  }

  /** Adds bytes of the body. */
  add(bytes: Buffer): void {
    if (this.ended) return;
    this.parts.push(bytes);
    this.partsBytes += bytes.length;
    this.bytes += bytes.length;
    this.cancelIfLate();
    if (this.bytes > this.memory.callBytesMax || !this.memory.isHalfEmpty) this.cancel();
    else if (this.partsBytes >= SLICE_BYTES) this.cut();
  }

  /** Ends the recording after the last byte. */
  complete(): void {
    if (this.entries < this.sources.length) this.cancel();
    if (this.ended) return;
    this.cut();
    this.ended = true;
    const { slices, sources, bytes } = this;
    this.end({ slices, sources, bytes });
  }

  /** Discards the recording unless it is complete. */
  cancel(): void {
    if (this.ended) return;
    this.ended = true;
    this.parts = [];
    this.slices.length = 0;
    this.end(undefined);
  }

  cancelIfLate(): void {
    if (performance.now() - this.startedAtMs > RECORDING_MS_MAX) this.cancel();
  }

  private addEntry(entry: Entry): void {
    if (this.ended) return;
    const source = this.sources[this.entries];
    this.entries++;
    const outcome = outcomeOf(entry);
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    if (!source || !isMadeOf(entry, source)) this.cancel();
  }

  private cut(): void {
    // An own allocation for each slice: a pooled one would keep the pool alive.
    const bytes = Buffer.allocUnsafeSlow(this.partsBytes);
    let at = 0;
    for (const part of this.parts) at += part.copy(bytes, at);
    this.slices.push({ bytes, outcomes: this.outcomes });
    this.parts = [];
    this.partsBytes = 0;
    this.outcomes = new Map();
  }
}

function keyOf({ header, order, languages }: PlanOfBody, form: string): string {
  return JSON.stringify([form, header, order.length, languages]);
}

function withoutText(outcome: CachedOutcome): CachedOutcome {
  if (!outcome.ok) return outcome;
  const { jsonBytes, crc32 } = outcome.transcript;
  return { ...outcome, transcript: { jsonBytes, crc32 } };
}

/** Whether a planned video is made of the same values. A cached value is parsed once, so a changed one is another object. */
function isFrom(source: EntrySource, video: PlannedVideo | undefined): boolean {
  if (!video?.outcome || video.upload !== source.upload || video.outcome.details !== source.outcome.details)
    return false;
  const [known, planned] = [source.outcome, video.outcome];
  if (known.ok)
    return (
      planned.ok &&
      planned.transcript.crc32 === known.transcript.crc32 &&
      planned.transcript.jsonBytes === known.transcript.jsonBytes
    );
  return (
    !planned.ok &&
    planned.failure.code === known.failure.code &&
    planned.failure.message === known.failure.message &&
    planned.failure.retryAfterSeconds === known.failure.retryAfterSeconds
  );
}

/** Whether an entry was sent as planned: a text that was evicted meanwhile is fetched again or missing. */
function isMadeOf(entry: Entry, { upload, outcome }: EntrySource): boolean {
  if (entry.videoId !== upload.videoId || entry.metadata !== metadataOf(upload, outcome.details)) return false;
  if (!entry.ok) return !outcome.ok && entry.error.code === outcome.failure.code;
  const { crc32, jsonBytes } = entry.transcript;
  return outcome.ok && entry.cached && crc32 === outcome.transcript.crc32 && jsonBytes === outcome.transcript.jsonBytes;
}
