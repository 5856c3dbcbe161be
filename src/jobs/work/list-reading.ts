import type { Logger } from '@nestjs/common';
import { isDatabaseUnavailable, sqlStateOf } from '../../database/database-errors.js';
import { ChannelNotFoundError, DomainError, PlaylistNotFoundError, UpstreamError } from '../../domain/errors.js';
import { ContinuationRejectedError } from '../../platform/video-platform.js';
import { Call, CallEnded } from '../../transcripts/call.js';
import { BUSY_SECONDS, SLICE_EXPIRED, type SliceOutcome } from './slice.js';

export type NoList = Extract<SliceOutcome, { type: 'channel_not_found' | 'playlist_not_found' | 'blocked' | 'busy' }>;

/**
 * Reads a page of a list in a call of its own. Resolves to why there is none.
 *
 * @throws what `read` throws for other reasons
 */
export async function readList<Page>(
  deadlineSeconds: number,
  options: ConstructorParameters<typeof Call>[1],
  read: (call: Call) => Promise<Page>,
): Promise<Page | NoList> {
  let isSent = false;
  const onRequest = () => void (isSent = true);
  const call = Object.assign(new Call(deadlineSeconds, options), { onRequest });
  try {
    return await read(call);
  } catch (error) {
    if (error instanceof ChannelNotFoundError) return { type: 'channel_not_found' };
    if (error instanceof PlaylistNotFoundError) return { type: 'playlist_not_found' };
    if (error instanceof UpstreamError && error.code === 'upstream_blocked' && isSent) return { type: 'blocked' };
    // What was refused here, before it was sent, says nothing about the list.
    if (error instanceof UpstreamError && (error.code === 'upstream_busy' || error.code === 'upstream_blocked'))
      return { type: 'busy', seconds: error.retryAfterSeconds ?? BUSY_SECONDS };
    throw error;
  } finally {
    call.finish();
  }
}

/** Logs why a check or a slice was not stored: what passes by itself is a warning. */
export function logFailure(logger: Logger, facts: object, error: unknown): void {
  const line = { ...facts, cause: String(error) };
  const passes =
    (error instanceof DomainError && error.retryable) ||
    error instanceof CallEnded ||
    error instanceof ContinuationRejectedError ||
    sqlStateOf(error) === SLICE_EXPIRED ||
    isDatabaseUnavailable(error);
  if (passes) logger.warn(line);
  else logger.error({ ...line, stack: error instanceof Error ? error.stack : undefined });
}
