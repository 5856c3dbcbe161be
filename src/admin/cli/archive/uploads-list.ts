import { parseChannelReference } from '../../../domain/channel-reference.js';
import { ChannelNotFoundError, UpstreamError } from '../../../domain/errors.js';
import type { Channel, Upload } from '../../../domain/transcript.js';
import {
  ContinuationRejectedError,
  type ReadingContext,
  type VideoPlatform,
} from '../../../platform/video-platform.js';
import { Call, CallEnded } from '../../../transcripts/call.js';

/** How often the list is read from its first page again when the platform does not continue it. */
const RESTARTS_MAX = 3;

/** Reads a channel and the list of all its uploads, page after page. */
export class UploadsList {
  /** @param deadlineSeconds of each read */
  constructor(
    private readonly platform: VideoPlatform,
    private readonly deadlineSeconds: number,
    private readonly stop: AbortSignal,
  ) {}

  /**
   * @param text the channel as the caller names it
   * @throws ChannelNotFoundError | UpstreamError, and CallEnded when the command is stopped
   */
  async channel(text: string): Promise<Channel> {
    const reference = parseChannelReference(text);
    if (!reference) throw new ChannelNotFoundError();
    const id = await this.read((context) => this.platform.resolveChannel(reference, context));
    return this.read((context) => this.platform.readChannel(id, context));
  }

  /**
   * The newest uploads of a channel, each once, newest first.
   *
   * @param limit undefined for all
   * @param onPage called with the number of uploads so far
   * @throws ChannelNotFoundError | UpstreamError, and CallEnded when the command is stopped
   */
  async uploads(channelId: string, limit: number | undefined, onPage: (uploads: number) => void): Promise<Upload[]> {
    const uploads = new Map<string, Upload>();
    let continuation: string | null | undefined;
    let restarts = 0;
    while (continuation !== null && uploads.size < (limit ?? Number.POSITIVE_INFINITY)) {
      const from = continuation;
      try {
        const page = await this.read((context) => this.platform.listUploadsPage(channelId, from, context));
        for (const upload of page.uploads) if (!uploads.has(upload.videoId)) uploads.set(upload.videoId, upload);
        continuation = page.next;
      } catch (error) {
        if (!(error instanceof ContinuationRejectedError)) throw error;
        if (++restarts > RESTARTS_MAX) throw new UpstreamError('upstream_failure', error);
        continuation = undefined;
        uploads.clear();
      }
      onPage(uploads.size);
    }
    return [...uploads.values()].slice(0, limit);
  }

  private read<T>(read: (context: ReadingContext) => Promise<T>): Promise<T> {
    return stoppable(this.stop, async (signal) => {
      const call = new Call(this.deadlineSeconds, { responseEnd: signal });
      try {
        return await read(call);
      } catch (error) {
        const isLate = error instanceof CallEnded && error.reason === 'deadline';
        throw isLate ? new UpstreamError('upstream_timeout', error) : error;
      } finally {
        call.finish();
      }
    });
  }
}

/**
 * Runs work with a signal of its own, which aborts with `stop` and at the end of the work: thousands of calls would
 * otherwise leave their listeners on `stop`.
 */
export async function stoppable<T>(stop: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const end = new AbortController();
  const abort = (): void => end.abort();
  if (stop.aborted) abort();
  stop.addEventListener('abort', abort, { once: true });
  try {
    return await work(end.signal);
  } finally {
    stop.removeEventListener('abort', abort);
    abort();
  }
}
