import { setMaxListeners } from 'node:events';
import { NO_DETAILS, type Upload, type VideoFailure } from '../domain/transcript.js';
import type { ReadingContext } from '../platform/video-platform.js';
import { CallEnded, type Call } from './call.js';
import { failedEntry, succeededEntry, type Entry } from './transcript-events.js';
import type { BufferedTexts } from './response/response-memory.js';
import { deflate, inflate, type SentText, type TextForm, type TranscriptText } from './cache/transcript-text.js';
import type { Fetched } from './video-fetches.js';

export const TEXT_EVICTED: VideoFailure = {
  code: 'upstream_failure',
  message: 'The cached transcript was evicted during the response. Retry the request.',
};

export const BUFFER_FULL: VideoFailure = {
  code: 'upstream_failure',
  message:
    'Too much of this response waits for its reader. Read the response faster or ask for fewer videos, then retry.',
};

/** Ends the fetching of a call that holds as much as it may; what has not arrived is not charged. */
class BufferFull extends Error {}

/** An entry that waits for its reader. `compressed` says that its text has to be inflated on its turn. */
export interface WaitingEntry {
  readonly entry: Entry;
  readonly compressed: boolean;
}

/** The place of an entry that is being fetched. */
export class Slot {
  readonly entry: Promise<WaitingEntry>;
  resolve: (entry: WaitingEntry) => void;
  reject: (reason: unknown) => void;

  constructor(readonly upload: Upload) {
    this.entry = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // A bug is thrown to the reader when it comes to this entry; until then nobody may be listening.
    this.entry.catch(() => undefined);
  }

  fail(failure: VideoFailure): void {
    this.resolve({ entry: failedEntry(this.upload, NO_DETAILS, failure), compressed: false });
  }
}

export interface FetchingWork {
  /** @throws the reason of `context.signal` when that is aborted first */
  fetch(upload: Upload, context: ReadingContext): Promise<Fetched>;
  /** Texts of transcripts that are known, in one round trip; undefined for one that was evicted. */
  texts(
    wanted: readonly { videoId: string; transcript: TranscriptText }[],
    form: TextForm,
  ): Promise<(SentText | undefined)[]>;
}

/**
 * Fetches the videos of a call side by side and holds the texts until the reader comes to them. It never waits for the
 * reader: what waits is compressed beyond a first few megabytes, and when even that is too much the fetching ends. A text
 * that was fetched is charged and held to the end, so nothing that was charged can be missing in the response.
 */
export class Fetching implements ReadingContext {
  readonly signal: AbortSignal;
  readonly deadlineAtMs: number;
  readonly fairnessKey: object;
  /** What the reader waits for at this moment: that is passed on as it comes. */
  awaited: Slot | 'any' | undefined;
  private readonly controller = new AbortController();

  /** @param atOnce how many videos are under way at a time */
  constructor(
    call: Call,
    private readonly form: TextForm,
    private readonly buffered: BufferedTexts,
    private readonly work: FetchingWork,
    private readonly atOnce: number,
  ) {
    this.signal = this.controller.signal;
    this.deadlineAtMs = call.deadlineAtMs;
    this.fairnessKey = call.fairnessKey;
    setMaxListeners(0, this.signal);
    const end = (): void => this.controller.abort(call.signal.reason);
    if (call.signal.aborted) end();
    else call.signal.addEventListener('abort', end, { once: true });
  }

  /** Fills the slots. Resolves when all are filled, with how many transcripts the call has to pay for. */
  async fill(slots: readonly Slot[]): Promise<number> {
    let charged = 0;
    const next = slots.values();
    const worker = async (): Promise<void> => {
      for (const slot of next) {
        this.stopWhenFull();
        await this.entryFor(slot, () => charged++).then(slot.resolve, slot.reject);
      }
    };
    await Promise.all(Array.from({ length: Math.min(this.atOnce, slots.length) }, worker));
    return charged;
  }

  /** A waiting entry as it is sent. */
  async open({ entry, compressed }: WaitingEntry): Promise<Entry> {
    if (!compressed || !entry.ok) return entry;
    const { transcript } = entry;
    const bytes = await inflate(transcript.bytes, transcript.jsonBytes);
    this.buffered.hold(bytes, 'passing');
    this.buffered.release(transcript.bytes);
    return { ...entry, transcript: { ...transcript, bytes } };
  }

  private async entryFor(slot: Slot, charge: () => void): Promise<WaitingEntry> {
    const { upload } = slot;
    const failed = (failure: VideoFailure, details = NO_DETAILS): WaitingEntry => ({
      entry: failedEntry(upload, details, failure),
      compressed: false,
    });
    try {
      const { outcome, own } = await this.work.fetch(upload, this);
      const { details } = outcome;
      if (!outcome.ok) return failed(outcome.failure, details);
      const [text] = await this.work.texts([{ videoId: upload.videoId, transcript: outcome.transcript }], this.form);
      if (!text) return failed(TEXT_EVICTED, details);
      if (own) charge();
      const awaited = this.isAwaited(slot);
      const compressed = this.form === 'json' && !awaited && !this.buffered.mayHoldPlain(text.bytes);
      const bytes = compressed ? await deflate(text.bytes) : text.bytes;
      this.buffered.hold(bytes, awaited ? 'passing' : 'waiting');
      this.stopWhenFull();
      return { entry: succeededEntry(upload, details, { ...text, bytes }, !own), compressed };
    } catch (error) {
      if (error instanceof CallEnded) return failed({ code: 'upstream_timeout' });
      if (error instanceof BufferFull) return failed(BUFFER_FULL);
      throw error;
    }
  }

  private isAwaited(slot: Slot): boolean {
    return this.awaited === 'any' || this.awaited === slot;
  }

  private stopWhenFull(): void {
    if (!this.signal.aborted && !this.buffered.mayFetch) this.controller.abort(new BufferFull());
  }
}
