import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import {
  VIDEO_FAILURE_CODES,
  VIDEO_FAILURES,
  VIDEO_KINDS,
  type VideoDetails,
  type VideoFailure,
  type VideoOutcome,
} from '../domain/transcript.js';
import { finite, flag, fromJson, listOf, nullable, oneOf, record, text, type Reader } from './stored-value.js';

/** What is known of a video: its transcript as the JSON text that is sent, or why it has none. */
export type Answer =
  | { ok: true; details: VideoDetails; transcriptJson: Buffer }
  | { ok: false; details: VideoDetails; failure: VideoFailure };

/** Raised when the stored form changes, so that another version's entries are simply not found. */
const FORMAT = 'ct1';
const NEWLINE = 0x0a;

const detailsReader: Reader<VideoDetails> = record<VideoDetails>({
  publishedAt: nullable(text),
  durationSeconds: nullable(finite),
  viewCount: nullable(finite),
  kind: nullable(oneOf(VIDEO_KINDS)),
  captionTracks: nullable(listOf(record({ languageCode: text, name: text, generated: flag }))),
});
const transcriptHeadReader = record({ details: detailsReader, bodyBytes: finite });
const failureReader = record({ details: detailsReader, code: oneOf(VIDEO_FAILURE_CODES), message: nullable(text) });

/**
 * Transcripts, and the videos known to have none, by video and languages. An entry is one line of JSON about the video
 * and, for a transcript, the bytes of its JSON behind it: those are copied to the answer as they are.
 */
@Injectable()
export class TranscriptCache {
  private readonly logger = new Logger(TranscriptCache.name);

  constructor(
    @Inject(CACHE_MANAGER) private readonly cache: Cache,
    private readonly environment: Environment,
  ) {}

  key(videoId: string, languages: readonly string[]): string {
    return `${FORMAT}:transcript:${videoId}:${languages.join(',')}`;
  }

  /** What is known of each video, in one round trip; undefined where nothing is. */
  async getMany(videoIds: readonly string[], languages: readonly string[]): Promise<(Answer | undefined)[]> {
    if (videoIds.length === 0) return [];
    const stored = await this.cache.mget<unknown>(videoIds.map((videoId) => this.key(videoId, languages)));
    return stored.map((value) => this.decode(value));
  }

  async get(videoId: string, languages: readonly string[]): Promise<Answer | undefined> {
    return this.decode(await this.cache.get<unknown>(this.key(videoId, languages)));
  }

  /** Remembers a transcript, or a failure that asking again would not change; anything else is not stored. */
  async keep(videoId: string, languages: readonly string[], answer: Answer): Promise<void> {
    if (!answer.ok && VIDEO_FAILURES[answer.failure.code].retryable) return;
    const ttlSeconds = answer.ok ? this.environment.TRANSCRIPT_TTL_SECONDS : this.environment.UNAVAILABLE_TTL_SECONDS;
    try {
      await this.cache.set(this.key(videoId, languages), encode(answer), ttlSeconds * 1000);
    } catch (error) {
      this.logger.debug({ event: 'cache_write_failed', cause: String(error) });
    }
  }

  private decode(value: unknown): Answer | undefined {
    if (value === undefined || value === null) return undefined;
    const answer = Buffer.isBuffer(value) ? decode(value) : undefined;
    if (!answer)
      this.logger.warn({
        event: 'cache_entry_unreadable',
        message: 'A stored entry was not readable and counts as missing.',
      });
    return answer;
  }
}

/** The form in which an outcome of the platform is kept and sent. */
export function asAnswer(outcome: VideoOutcome): Answer {
  if (!outcome.ok) return outcome;
  return {
    ok: true,
    details: outcome.details,
    transcriptJson: Buffer.from(JSON.stringify(Object.fromEntries(outcome.transcript))),
  };
}

function encode(answer: Answer): Buffer {
  if (!answer.ok) {
    const { code, message = null } = answer.failure;
    return Buffer.from(JSON.stringify({ details: answer.details, code, message }));
  }
  const head = { details: answer.details, bodyBytes: answer.transcriptJson.length };
  return Buffer.concat([Buffer.from(JSON.stringify(head)), Buffer.of(NEWLINE), answer.transcriptJson]);
}

function decode(stored: Buffer): Answer | undefined {
  const headEnd = stored.indexOf(NEWLINE);
  if (headEnd === -1) {
    const failure = fromJson(stored, failureReader);
    if (!failure) return undefined;
    const { code, message, details } = failure;
    return { ok: false, details, failure: message === null ? { code } : { code, message } };
  }
  const head = fromJson(stored.subarray(0, headEnd), transcriptHeadReader);
  const transcriptJson = stored.subarray(headEnd + 1);
  // A value cut short by its store must never go out as a transcript.
  if (!head || head.bodyBytes !== transcriptJson.length || transcriptJson.at(-1) !== 0x7d) return undefined;
  return { ok: true, details: head.details, transcriptJson };
}
