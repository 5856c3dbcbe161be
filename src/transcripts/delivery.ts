import { NO_DETAILS, type Upload, type VideoFailure } from '../domain/transcript.js';
import type { CallPlan, PlannedVideo } from './call-plan.js';
import { CallEnded, type Call } from './call.js';
import { count, emptySummary, failedEntry, succeededEntry, type Entry, type TranscriptsEvent } from './events.js';
import { FinishingOrder } from './finishing-order.js';
import { PlannedTexts } from './planned-texts.js';
import type { Answer } from './transcript-cache.js';
import type { TranscriptFigures } from './transcript-figures.js';
import type { SentText, TextForm, TranscriptText } from './transcript-text.js';
import type { Fetched } from './video-fetches.js';

/** How long the summary waits for the settlement; a slow database must not hold back an answer that is complete. */
const SETTLEMENT_WAIT_MS = 2_000;

/** `newest-first` waits for the newer entry before it gives a later one; `as-finished` gives each when it is there. */
export type EntryOrder = 'newest-first' | 'as-finished';

const TEXT_LOST: VideoFailure = {
  code: 'upstream_failure',
  message: 'The transcript that was kept got lost while the answer was written. Ask again.',
};

/** What a delivery has others do, on behalf of its call. */
export interface DeliveryWork {
  /** @throws CallEnded when the call ends first */
  fetch(upload: Upload): Promise<Fetched>;
  /** Texts of transcripts that are known, in one round trip; undefined for one that was lost. */
  texts(
    wanted: readonly { videoId: string; transcript: TranscriptText }[],
    form: TextForm,
  ): Promise<(SentText | undefined)[]>;
  /**
   * Fetches a transcript that the plan counted on and that was lost since, under a reservation of its own; undefined
   * when none could be had.
   *
   * @throws CallEnded when the call ends first
   */
  fetchLost(upload: Upload): Promise<Fetched | undefined>;
  /** Ends the plan's reservation; never rejects. */
  settle(fetched: number): Promise<void>;
}

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
  private readonly planned: PlannedTexts;
  private fetched = 0;

  /**
   * @param form in which the texts go out
   * @param fetchesAtOnce how many videos of one call are under way at a time
   */
  constructor(
    private readonly plan: CallPlan,
    private readonly call: Call,
    private readonly form: TextForm,
    private readonly work: DeliveryWork,
    fetchesAtOnce: number,
    private readonly figures: TranscriptFigures,
  ) {
    this.slots = plan.videos.map((video) => (video.answer ? undefined : new Slot()));
    this.planned = new PlannedTexts(plan.videos, form, (wanted) => work.texts(wanted, form));
    this.settled = this.fetchMissing(fetchesAtOnce).then(() => work.settle(this.fetched));
  }

  /** The channel, each entry in the order asked for as its turn comes, and the summary. Throws only for a bug. */
  async *events(order: EntryOrder): AsyncGenerator<TranscriptsEvent, void, undefined> {
    yield { type: 'channel', channel: this.plan.channel };
    for (const coming of order === 'newest-first' ? this.newestFirst() : this.asTheyFinish()) {
      const entry = coming instanceof Promise ? await coming : coming;
      count(this.summary, entry);
      this.figures.entry(entry);
      yield { type: 'result', entry };
    }
    await this.settledOrLate();
    this.call.finish();
    yield { type: 'summary', summary: this.summary };
  }

  private *newestFirst(): Generator<Entry | Promise<Entry>> {
    for (const [index, video] of this.plan.videos.entries()) yield this.entryAt(index, video);
  }

  /** First what is known already, then each fetch when it is done. */
  private *asTheyFinish(): Generator<Entry | Promise<Entry>> {
    const finishing = new FinishingOrder<Entry>();
    for (const [index, slot] of this.slots.entries()) {
      this.slots[index] = undefined;
      if (slot) finishing.add(slot.entry);
    }
    for (const { upload, answer } of this.plan.videos) if (answer) yield this.known(upload, answer);
    yield* finishing;
  }

  private entryAt(index: number, { upload, answer }: PlannedVideo): Entry | Promise<Entry> {
    const slot = this.slots[index];
    // Given away: a body that was sent is not kept until the end of the call.
    this.slots[index] = undefined;
    if (slot) return slot.entry;
    if (!answer) throw new Error('An entry was asked for twice.');
    return this.known(upload, answer);
  }

  private known(upload: Upload, answer: Answer): Entry | Promise<Entry> {
    if (!answer.ok) return failedEntry(upload, answer.details, answer.failure);
    const { transcript, details } = answer;
    const bytes = transcript[this.form];
    if (!bytes) return this.plannedEntry(upload, answer);
    const { jsonBytes, crc32 } = transcript;
    return succeededEntry(upload, details, { bytes, jsonBytes, crc32 }, true);
  }

  private async plannedEntry(upload: Upload, answer: Answer & { ok: true }): Promise<Entry> {
    const text = await this.planned.take(upload.videoId);
    if (text) return succeededEntry(upload, answer.details, text, true);
    return this.asEntry(upload, () => this.work.fetchLost(upload));
  }

  private async fetchMissing(fetchesAtOnce: number): Promise<void> {
    const missing = this.plan.videos.flatMap(({ upload }, index) => {
      const slot = this.slots[index];
      return slot ? [{ upload, slot }] : [];
    });
    const next = missing.values();
    const work = async (): Promise<void> => {
      for (const { upload, slot } of next)
        await this.asEntry(upload, () => this.fetchCounted(upload)).then(slot.resolve, slot.reject);
    };
    await Promise.all(Array.from({ length: Math.min(fetchesAtOnce, missing.length) }, work));
  }

  private async fetchCounted(upload: Upload): Promise<Fetched> {
    const fetched = await this.work.fetch(upload);
    if (fetched.answer.ok && fetched.own) this.fetched++;
    return fetched;
  }

  private async asEntry(upload: Upload, fetch: () => Promise<Fetched | undefined>): Promise<Entry> {
    try {
      const fetched = await fetch();
      if (!fetched) return failedEntry(upload, NO_DETAILS, TEXT_LOST);
      const { answer, own } = fetched;
      if (!answer.ok) return failedEntry(upload, answer.details, answer.failure);
      const [text] = await this.work.texts([{ videoId: upload.videoId, transcript: answer.transcript }], this.form);
      return text ? succeededEntry(upload, answer.details, text, !own) : failedEntry(upload, answer.details, TEXT_LOST);
    } catch (error) {
      if (error instanceof CallEnded) return failedEntry(upload, NO_DETAILS, { code: 'upstream_timeout' });
      throw error;
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
