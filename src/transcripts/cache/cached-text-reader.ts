import type { PlannedVideo } from '../call-plan.js';
import type { BufferedTexts } from '../response/response-memory.js';
import type { SentText, TextForm, TranscriptText } from './transcript-text.js';

/** About as much as is read from another process at a time. A text is about six times as long as the same deflated. */
const CHUNK_JSON_BYTES: Record<TextForm, number> = { json: 512 * 1024, deflated: 3 * 1024 * 1024 };

interface Planned {
  videoId: string;
  transcript: TranscriptText;
}

type ReadTexts = (wanted: readonly Planned[]) => Promise<(SentText | undefined)[]>;
type Chunk = Map<string, SentText | undefined>;

/**
 * The texts of what a plan found in the cache and that are not in the plan itself, read in chunks in the order in which
 * they are sent: the chunk that is asked for and the next, so that the reader does not wait and no more than two are held.
 */
export class CachedTextReader {
  private readonly chunks: Planned[][];
  private readonly chunkOf = new Map<string, number>();
  private readonly reads = new Map<number, Promise<Chunk>>();
  private current = 0;

  /** @param buffered counts what was read until it is released there */
  constructor(
    videos: readonly PlannedVideo[],
    form: TextForm,
    private readonly readTexts: ReadTexts,
    private readonly buffered: BufferedTexts,
  ) {
    const planned = videos.flatMap(({ upload: { videoId }, outcome }) =>
      outcome?.ok && !outcome.transcript[form] ? [{ videoId, transcript: outcome.transcript }] : [],
    );
    this.chunks = inChunks(planned, CHUNK_JSON_BYTES[form]);
    for (const [index, chunk] of this.chunks.entries())
      for (const { videoId } of chunk) this.chunkOf.set(videoId, index);
  }

  /** The text of a planned video, to be taken once; undefined when it was evicted. */
  async take(videoId: string): Promise<SentText | undefined> {
    const index = this.chunkOf.get(videoId);
    if (index === undefined) return undefined;
    for (; this.current < index; this.current++) {
      this.reads.delete(this.current);
      this.chunks[this.current] = [];
    }
    const reading = this.chunk(index);
    // Should it fail, that is reported when its turn comes; until then nobody listens.
    this.chunk(index + 1).catch(() => undefined);
    const texts = await reading;
    const text = texts.get(videoId);
    texts.delete(videoId);
    return text;
  }

  /**
   * Those of the texts from the current chunk on that were evicted. Reads all of them, one chunk after another, and holds
   * none: only reading finds what is damaged.
   */
  async evicted(): Promise<Set<string>> {
    const evicted = new Set<string>();
    for (let index = this.current; index < this.chunks.length; index++) {
      const texts = await (this.reads.get(index) ?? this.read(this.chunks[index] ?? []));
      for (const [videoId, text] of texts) if (!text) evicted.add(videoId);
    }
    return evicted;
  }

  private chunk(index: number): Promise<Chunk> {
    const known = this.reads.get(index);
    if (known) return known;
    const reading = this.read(this.chunks[index] ?? []).then((texts) => {
      for (const text of texts.values()) if (text) this.buffered.hold(text.bytes, 'passing');
      return texts;
    });
    this.reads.set(index, reading);
    return reading;
  }

  private async read(chunk: readonly Planned[]): Promise<Chunk> {
    const texts = chunk.length === 0 ? [] : await this.readTexts(chunk);
    return new Map(chunk.map(({ videoId }, index) => [videoId, texts[index]]));
  }
}

function inChunks(planned: readonly Planned[], bytesMax: number): Planned[][] {
  const chunks: Planned[][] = [];
  let room = 0;
  for (const one of planned) {
    const { jsonBytes } = one.transcript;
    const chunk = chunks.at(-1);
    if (chunk && jsonBytes <= room) chunk.push(one);
    else {
      chunks.push([one]);
      room = bytesMax;
    }
    room -= jsonBytes;
  }
  return chunks;
}
