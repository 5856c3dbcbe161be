import { TextTracks, VideoDetails, type Channel, type Upload } from '../../domain/transcript.js';
import type { CachedOutcome } from '../cache/transcript-cache.js';
import { statedAgeSecondsMin } from '../cache/lifetimes.js';
import { inflate, readTranscript } from '../cache/transcript-text.js';
import { passagesOf, type Passage } from './passages.js';

/** What is stored of a video with its text. */
export const KeptVideo = VideoDetails.extend({ tracks: TextTracks });

/** A text as `library_keep` stores it. */
export interface KeptText {
  video_id: string;
  languages: string[];
  choices: string[];
  channel_id: string | null;
  channel_handle: string | null;
  published_at: string | null;
  /** JSON of `KeptVideo`. */
  video: string;
  length: number;
  bytes: number;
  crc: number;
  passages: Passage[];
  deflated: Buffer;
}

/** The key of a language choice. */
export const choiceKey = (choice: readonly string[]): string => choice.join(',');

/**
 * The form in which the text of an upload is kept.
 *
 * @param choice the languages that were requested
 * @param listedBy the channel whose list has the upload, which knows its handle
 */
export async function keptText(
  upload: Upload,
  { details, transcript, tracks }: Extract<CachedOutcome, { ok: true }>,
  choice: readonly string[],
  listedBy: Channel | null,
): Promise<KeptText> {
  const { deflated, jsonBytes: bytes, crc32: crc } = transcript;
  const read = await readTranscript(await inflate(transcript));
  const languages = [...read.keys()];
  const [only = '', ...others] = languages;
  // A text in one language is the one of a request for that language too, unless a generated track was asked for beside a manual one.
  const answersLanguage = others.length === 0 && !choice.some((code) => code.startsWith('generated:'));
  const channel = listedBy ?? details.channel;
  const publishedAt = details.publishedAt ?? upload.publishedAt;
  const ageSeconds = statedAgeSecondsMin(upload, Date.now());
  const estimated = ageSeconds === undefined ? null : new Date(Date.now() - ageSeconds * 1000).toISOString();
  return {
    video_id: upload.videoId,
    languages,
    choices: [...new Set([choiceKey(choice), ...(answersLanguage ? [only.toLowerCase()] : [])])],
    channel_id: channel?.id ?? null,
    channel_handle: listedBy?.handle?.toLowerCase() ?? null,
    published_at: publishedAt ?? estimated,
    video: JSON.stringify({ ...details, title: details.title ?? upload.title, publishedAt, channel, tracks }),
    ...{ length: deflated.length, bytes, crc, passages: await passagesOf(read), deflated },
  };
}

/** What one statement stores: many passages take long, and the organization is locked meanwhile. */
const PASSAGES_MAX = 4_000;

/** The parameters of `library_keep`: the first of the texts, at least one, and whether there are more. */
export function keptParameters(texts: readonly KeptText[]): { kept: string; entries: Buffer } {
  const sums = texts.map((_text, index) =>
    texts.slice(0, index).reduce((sum, { passages }) => sum + passages.length, 0),
  );
  const fitting = texts.filter(
    ({ passages }, index) => index === 0 || (sums[index] ?? 0) + passages.length <= PASSAGES_MAX,
  );
  const stored = fitting.map(({ deflated: _deflated, ...text }) => text);
  return {
    kept: JSON.stringify({ texts: stored, rest: fitting.length < texts.length }),
    entries: Buffer.concat(fitting.map(({ deflated }) => deflated)),
  };
}
