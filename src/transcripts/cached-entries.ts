import type { SentText, TextForm, TranscriptText } from './cache/transcript-text.js';
import type { TranscriptCache } from './cache/transcript-cache.js';
import { BUFFER_FULL } from './fetching.js';
import type { BufferedTexts } from './response/response-memory.js';
import { failedEntry, succeededEntry, type Entry } from './transcript-events.js';
import type { CallPlan, PlannedVideo } from './transcript-planner.js';

/** Approximate JSON bytes read from a shared cache at a time. JSON is about six times as long as its deflated form. */
const CHUNK_JSON_BYTES: Record<TextForm, number> = { json: 512 * 1024, deflated: 3 * 1024 * 1024 };

interface CachedVideo {
  videoId: string;
  transcript: TranscriptText;
}

type Chunk = Map<string, SentText | undefined>;

/**
 * The entries of the videos that a plan found in the cache. Texts that the plan does not contain are read in chunks, in
 * the order in which they are sent: the current chunk and the next one, so that the reader does not wait and at most two
 * chunks are buffered.
 */
export class CachedEntries {
  private readonly videos: readonly PlannedVideo[];
  private readonly languages: readonly string[];
  private readonly chunks: CachedVideo[][];
  private readonly chunkOf = new Map<string, number>();
  private readonly reads = new Map<number, Promise<Chunk>>();
  private current = 0;

  /** @param buffered counts the texts until they are released there */
  constructor(
    { videos, languages }: Pick<CallPlan, 'videos' | 'languages'>,
    private readonly form: TextForm,
    private readonly buffered: BufferedTexts,
    private readonly cache: Pick<TranscriptCache, 'texts' | 'evict'>,
  ) {
    this.videos = videos;
    this.languages = languages;
    for (const video of videos) this.pin(video);
    const unread = videos.flatMap(({ upload: { videoId }, outcome }) =>
      outcome?.ok && !outcome.transcript[form] ? [{ videoId, transcript: outcome.transcript }] : [],
    );
    this.chunks = inChunks(unread, CHUNK_JSON_BYTES[form]);
    for (const [index, chunk] of this.chunks.entries())
      for (const { videoId } of chunk) this.chunkOf.set(videoId, index);
  }

  /** The entry of a video, to be called once for each; undefined when its text was evicted after the planning. */
  async entry(video: PlannedVideo): Promise<Entry | undefined> {
    const { upload, outcome } = video;
    if (!outcome) throw new Error('The video is not cached.');
    const { details } = outcome;
    if (!outcome.ok) return failedEntry(upload, details, outcome.failure);
    const { json, jsonBytes, crc32, [this.form]: bytes } = outcome.transcript;
    if (bytes) {
      unpin(video);
      return succeededEntry(upload, details, { bytes, jsonBytes, crc32 }, true);
    }
    if (!this.buffered.mayRead(jsonBytes)) return failedEntry(upload, details, BUFFER_FULL);
    const text = await this.read(upload.videoId);
    unpin(video);
    if (json) this.buffered.release(json);
    return text && succeededEntry(upload, details, text, true);
  }

  /**
   * The videos from the current chunk on whose texts were evicted. Reads one chunk after another without buffering them:
   * a damaged text is found only by reading it.
   */
  async evicted(): Promise<Set<string>> {
    const evicted = new Set<string>();
    for (let index = this.current; index < this.chunks.length; index++) {
      const texts = await (this.reads.get(index) ?? this.readChunk(index));
      for (const [videoId, text] of texts) if (!text) evicted.add(videoId);
    }
    return evicted;
  }

  /** Deletes the cache entries of videos whose texts were evicted, so that they are fetched again. */
  async delete(videoIds: readonly string[]): Promise<void> {
    await Promise.all(videoIds.map((videoId) => this.cache.evict(videoId, this.languages)));
  }

  /** Removes all texts from the plan, so that it does not retain them. */
  close(): void {
    for (const video of this.videos) unpin(video);
  }

  /** Counts a text that the plan contains; if the buffer has no room for it, it is read again when it is sent. */
  private pin(video: PlannedVideo): void {
    if (!video.outcome?.ok) return;
    const text = video.outcome.transcript[this.form] ?? video.outcome.transcript.json;
    if (!text) return;
    if (this.buffered.mayPin(text)) this.buffered.add(text, 'passing');
    else unpin(video);
  }

  private async read(videoId: string): Promise<SentText | undefined> {
    const index = this.chunkOf.get(videoId);
    if (index === undefined) return undefined;
    for (; this.current < index; this.current++) {
      this.reads.delete(this.current);
      this.chunks[this.current] = [];
    }
    const reading = this.bufferChunk(index);
    // A failure to read ahead is thrown when that chunk is current; until then the rejection has no handler.
    this.bufferChunk(index + 1).catch(() => undefined);
    const texts = await reading;
    const text = texts.get(videoId);
    texts.delete(videoId);
    return text;
  }

  private bufferChunk(index: number): Promise<Chunk> {
    const known = this.reads.get(index);
    if (known) return known;
    const reading = this.readChunk(index).then((texts) => {
      for (const text of texts.values()) if (text) this.buffered.add(text.bytes, 'passing');
      return texts;
    });
    this.reads.set(index, reading);
    return reading;
  }

  private async readChunk(index: number): Promise<Chunk> {
    const chunk = this.chunks[index] ?? [];
    const texts = chunk.length === 0 ? [] : await this.cache.texts(chunk, this.languages, this.form);
    return new Map(chunk.map(({ videoId }, position) => [videoId, texts[position]]));
  }
}

/** Removes the text from a plan, so that the plan does not retain it. */
function unpin(video: PlannedVideo): void {
  const { outcome } = video;
  if (!outcome?.ok || !(outcome.transcript.json ?? outcome.transcript.deflated)) return;
  const { jsonBytes, crc32 } = outcome.transcript;
  video.outcome = { ...outcome, transcript: { jsonBytes, crc32 } };
}

function inChunks(videos: readonly CachedVideo[], bytesMax: number): CachedVideo[][] {
  const chunks: CachedVideo[][] = [];
  let remainingBytes = 0;
  for (const video of videos) {
    const { jsonBytes } = video.transcript;
    const chunk = chunks.at(-1);
    if (chunk && jsonBytes <= remainingBytes) chunk.push(video);
    else {
      chunks.push([video]);
      remainingBytes = bytesMax;
    }
    remainingBytes -= jsonBytes;
  }
  return chunks;
}
