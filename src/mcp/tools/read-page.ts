import { PlanLimitExceededError, VideoFailedError } from '../../domain/errors.js';
import type { TranscriptCache } from '../../transcripts/cache/transcript-cache.js';
import { listHead } from '../../transcripts/formats/markdown.js';
import type { VideoSource } from '../../transcripts/sources/video-list.js';
import { entryError, type Entry, type Summary } from '../../transcripts/transcript-events.js';
import { staleCursor, writeCursor, type Position } from '../cursor.js';
import { TextPage } from '../text-page.js';
import { fetchTranscripts } from './fetch-transcripts.js';
import type { ToolCall, ToolServices } from './tool.js';

/** A position at the start of a text. */
export type Start = Pick<Position, 'tool' | 'subject' | 'languages' | 'range'>;

interface PageRequest {
  source: VideoSource;
  /** Where the page starts. */
  position: Start | Position;
  /** The length of the text with its footer, at most. */
  maxChars: number;
  /** The level of the headings of videos. */
  headingLevel: 1 | 2;
}

/** As much of the texts as fits into one result. */
export interface Page {
  text: string;
  resource: string;
  /** The entries that were read for this page, without their texts. */
  entries: Entry[];
  summary: Summary;
  /** Continues the text; null at its end. */
  cursor: string | null;
}

/**
 * Fetches the videos of a source and writes as much of their texts as fits.
 *
 * @throws InvalidRequestError when the position is of a transcript that has changed, and the errors that refuse the call
 */
export async function readPage(
  { source, position, maxChars: charactersMax, headingLevel }: PageRequest,
  call: ToolCall,
  services: ToolServices,
): Promise<Page> {
  if ('crc32' in position) await refuseStale(position, services.cache);
  const request = { source, languages: position.languages };
  const { plan, summary, events } = await fetchTranscripts(request, call, services).catch((error: unknown) => {
    const isFixed = position.tool === 'get_video_transcript' || 'videoIds' in position;
    if (error instanceof PlanLimitExceededError && isFixed)
      throw new PlanLimitExceededError(error.quota, error.required, 0, 'videos');
    throw error;
  });
  const { tool, subject, languages: wanted, range } = position;
  const remaining = { tool, subject, resource: plan.resource, languages: wanted, range };
  // No later cursor of this text is longer.
  const footerMax = footer({
    ...remaining,
    videoIds: plan.order.map(({ upload }) => upload.videoId),
    offset: Number.MAX_SAFE_INTEGER,
    crc32: 0xffff_ffff,
  });
  const form = {
    maxChars: charactersMax - footerMax.text.length,
    headingLevel,
    languages: position.languages,
    range: position.range,
  };
  const page = new TextPage(form, 'offset' in position ? position : undefined);
  const entries: Entry[] = [];
  for await (const event of events) {
    if (event.type === 'channel') page.head(listHead(event));
    if (event.type !== 'result') continue;
    await page.add(event.entry);
    entries.push(event.entry);
  }
  const { next } = page;
  const videoIds = entries.map(({ videoId }) => videoId);
  const end =
    next &&
    footer({
      ...remaining,
      offset: next.offset,
      crc32: next.crc32,
      videoIds: videoIds.slice(videoIds.indexOf(next.videoId)),
    });
  return {
    text: end ? `${page.text}${end.text}` : page.text,
    resource: plan.resource,
    entries,
    summary,
    cursor: end?.cursor ?? null,
  };

  /** The end of a page that is continued. */
  function footer(next: Position): { text: string; cursor: string } {
    const written = writeCursor(next);
    // After a blank line, because the rule would otherwise make a heading of the last paragraph.
    return { text: `\n\n---\n\nThe text continues. Call ${tool} with the cursor ${written}\n`, cursor: written };
  }
}

/**
 * Looks up the video that a page continues, before quota is reserved. A video that is not cached is checked when it has been
 * fetched.
 *
 * @throws InvalidRequestError when its transcript has changed
 * @throws VideoFailedError when it has no transcript any more
 */
async function refuseStale(
  { videoIds, languages: wanted, offset, crc32 }: Position,
  cache: TranscriptCache,
): Promise<void> {
  if (crc32 === null) return;
  const [outcome] = await cache.getMany(videoIds.slice(0, 1), wanted);
  if (outcome?.ok && outcome.transcript.crc32 !== crc32) throw staleCursor();
  if (outcome?.ok === false && offset > 0) throw new VideoFailedError(entryError(outcome.failure));
}
