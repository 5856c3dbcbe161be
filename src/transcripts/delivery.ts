import { NO_DETAILS } from '../domain/transcript.js';
import type { CallPlan, PlannedVideo } from './call-plan.js';
import { CallEnded, type Call } from './call.js';
import { count, emptySummary, failedEntry, succeededEntry, type Entry, type TranscriptsEvent } from './events.js';
import type { VideoFetches } from './video-fetches.js';

/** How long the summary waits for the settlement; a slow database must not hold back an answer that is complete. */
const SETTLEMENT_WAIT_MS = 2_000;

/** An entry that is there or will be. */
class Slot {
  readonly entry: Promise<Entry>;
  resolve: (entry: Entry) => void;
  reject: (reason: unknown) => void;

  constructor() {
    this.entry = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // A bug is thrown to the reader when it comes to this entry; until then nobody may be listening.
    this.entry.catch(() => undefined);
  }
}

/** The second half of a call: the fetching, which runs by itself, and the events, which wait for it in order. */
export class Delivery {
  /** Resolves when the fetching has ended and the reservation is settled; never rejects. */
  readonly settled: Promise<void>;
  /** Counts over the entries that the reader has come to. */
  readonly summary = emptySummary();
  private readonly slots: (Slot | undefined)[];
  private fetched = 0;

  /** @param fetchesAtOnce how many videos of one call are under way at a time */
  constructor(
    private readonly plan: CallPlan,
    private readonly call: Call,
    private readonly fetches: VideoFetches,
    fetchesAtOnce: number,
    settle: (fetched: number) => Promise<void>,
  ) {
    this.slots = plan.videos.map((video) => (video.answer ? undefined : new Slot()));
    this.settled = this.fetchMissing(fetchesAtOnce).then(() => {
      call.finish();
      return settle(this.fetched);
    });
  }

  /** The channel, each entry newest first as its turn comes, and the summary. Throws only for a bug. */
  async *events(): AsyncGenerator<TranscriptsEvent, void, undefined> {
    yield { type: 'channel', channel: this.plan.channel };
    for (const [index, video] of this.plan.videos.entries()) {
      const entry = await this.entryAt(index, video);
      count(this.summary, entry);
      yield { type: 'result', entry };
    }
    await this.settledOrLate();
    yield { type: 'summary', summary: this.summary };
  }

  private entryAt(index: number, { upload, answer }: PlannedVideo): Entry | Promise<Entry> {
    const slot = this.slots[index];
    // Given away: a body that was sent is not kept until the end of the call.
    this.slots[index] = undefined;
    if (slot) return slot.entry;
    if (!answer) throw new Error('An entry was asked for twice.');
    return answer.ok
      ? succeededEntry(upload, answer.details, answer.transcriptJson, true)
      : failedEntry(upload, answer.details, answer.failure);
  }

  private async fetchMissing(fetchesAtOnce: number): Promise<void> {
    const missing = this.plan.videos.flatMap((video, index) => {
      const slot = this.slots[index];
      return slot ? [{ video, slot }] : [];
    });
    const next = missing.values();
    const work = async (): Promise<void> => {
      for (const { video, slot } of next) await this.fill(slot, video);
    };
    await Promise.all(Array.from({ length: Math.min(fetchesAtOnce, missing.length) }, work));
  }

  private async fill(slot: Slot, { upload }: PlannedVideo): Promise<void> {
    try {
      const { answer, own } = await this.fetches.fetch(upload.videoId, this.plan.languages, this.call);
      if (answer.ok && own) this.fetched++;
      slot.resolve(
        answer.ok
          ? succeededEntry(upload, answer.details, answer.transcriptJson, !own)
          : failedEntry(upload, answer.details, answer.failure),
      );
    } catch (error) {
      if (error instanceof CallEnded) slot.resolve(failedEntry(upload, NO_DETAILS, { code: 'upstream_timeout' }));
      else slot.reject(error);
    }
  }

  private async settledOrLate(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, SETTLEMENT_WAIT_MS);
    });
    await Promise.race([this.settled, late]);
    clearTimeout(timer);
  }
}
