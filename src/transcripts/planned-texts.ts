import type { PlannedVideo } from './call-plan.js';
import type { SentText, TextForm, TranscriptText } from './transcript-text.js';

/** About as much as is read from another process at a time. A text is about six times as long as the same deflated. */
const CHUNK_JSON_BYTES: Record<TextForm, number> = { json: 512 * 1024, deflated: 3 * 1024 * 1024 };

interface Planned {
  videoId: string;
  transcript: TranscriptText;
}

type ReadTexts = (wanted: readonly Planned[]) => Promise<(SentText | undefined)[]>;

/**
 * The texts of what a plan found in a cache of another process, read in chunks in the order in which they are sent: the
 * chunk that is asked for and the next, so that the reader does not wait and no more than two are held.
 */
export class PlannedTexts {
  private readonly chunks: Planned[][];
  private readonly chunkOf = new Map<string, number>();
  private readonly reads = new Map<number, Promise<Map<string, SentText | undefined>>>();

  constructor(
    videos: readonly PlannedVideo[],
    form: TextForm,
    private readonly readTexts: ReadTexts,
  ) {
    const planned = videos.flatMap(({ upload: { videoId }, answer }) =>
      answer?.ok && !answer.transcript[form] ? [{ videoId, transcript: answer.transcript }] : [],
    );
    this.chunks = inChunks(planned, CHUNK_JSON_BYTES[form]);
    for (const [index, chunk] of this.chunks.entries())
      for (const { videoId } of chunk) this.chunkOf.set(videoId, index);
  }

  /** The text of a planned video, to be taken once; undefined when it was lost. */
  async take(videoId: string): Promise<SentText | undefined> {
    const index = this.chunkOf.get(videoId);
    if (index === undefined) return undefined;
    for (const earlier of this.reads.keys()) if (earlier < index) this.reads.delete(earlier);
    const reading = this.chunk(index);
    // Should it fail, that is told when its turn comes; until then nobody listens.
    this.chunk(index + 1).catch(() => undefined);
    const texts = await reading;
    const text = texts.get(videoId);
    texts.delete(videoId);
    return text;
  }

  private chunk(index: number): Promise<Map<string, SentText | undefined>> {
    const known = this.reads.get(index);
    if (known) return known;
    const reading = this.read(this.chunks[index] ?? []);
    this.reads.set(index, reading);
    return reading;
  }

  private async read(chunk: readonly Planned[]): Promise<Map<string, SentText | undefined>> {
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
