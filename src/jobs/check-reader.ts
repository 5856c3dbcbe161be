import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { Environment } from '../config/environment.js';
import { ChannelNotFoundError, UpstreamError } from '../domain/errors.js';
import { VideoPlatform } from '../platform/video-platform.js';
import { Call } from '../transcripts/call.js';
import { ChannelUploads } from '../transcripts/sources/channel-uploads.js';
import { NewestUploads } from '../transcripts/sources/newest-uploads.js';
import type { CheckedPage } from './check.js';
import type { JobDto } from './dto/job.dto.js';
import { SliceRepository } from './slice.repository.js';
import type { ClaimedSlice, ClaimedSubscription, SliceOutcome } from './slice.js';
import { walkPage } from './walk.js';

const CHECK_RESULTS = ['new', 'unchanged', 'unread'] as const;

/** Reads the channel of a subscription: one page of its list for a slice, and what is new on it. */
@Injectable()
export class CheckReader {
  private readonly checks: Counter<'result'>;

  constructor(
    private readonly store: SliceRepository,
    private readonly channels: ChannelUploads,
    private readonly newest: NewestUploads,
    private readonly platform: VideoPlatform,
    private readonly environment: Environment,
    registry: Registry,
  ) {
    this.checks = new Counter({
      name: 'ct_subscription_checks_total',
      help: 'Pages that this process read for checks of subscriptions: with new uploads, without, or not read.',
      labelNames: ['result'],
      registers: [registry],
    });
    for (const result of CHECK_RESULTS) this.checks.inc({ result }, 0);
  }

  /**
   * Reads one page. Resolves to why it has none.
   *
   * @throws UpstreamError | CallEnded | ContinuationRejectedError when the list could not be read
   */
  async read(
    { job, organizationId, continuation, subscription }: ClaimedSlice,
    stop: AbortSignal,
  ): Promise<CheckedPage | SliceOutcome> {
    if (!subscription) throw new Error('Only subscriptions have checks.');
    const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, {
      organizationId,
      responseEnd: stop,
      background: true,
    });
    try {
      const read = await this.page(job, continuation, subscription, call);
      this.checks.inc({ result: read.checked.added.length > 0 ? 'new' : 'unchanged' });
      return read;
    } catch (error) {
      this.checks.inc({ result: 'unread' });
      if (error instanceof ChannelNotFoundError) return { type: 'channel_not_found' };
      if (error instanceof UpstreamError && error.code === 'upstream_blocked') return { type: 'blocked' };
      throw error;
    } finally {
      call.finish();
    }
  }

  /** The dates and kinds, and the name of the channel, are read only when something is new. */
  private async page(
    job: JobDto,
    continuation: string | null,
    { walk, dueAtMs, seenPosition, nowMs }: ClaimedSubscription,
    call: Call,
  ): Promise<CheckedPage> {
    const known = job.channel ?? (await this.channels.find(job.request.channel ?? '', call));
    const listed =
      continuation === null
        ? await this.newest.page(known.id, dueAtMs, call)
        : await this.platform.listUploadsPage(known.id, continuation, call);
    const checked = walkPage(walk, listed, await this.store.knownUploads(job.id, seenPosition, listed.uploads), nowMs);
    if (checked.added.length + checked.changed.length === 0) return { checked, channel: known, next: listed.next };
    const channel = await this.channels.find(known.id, call);
    const page = continuation === null ? await this.newest.described(known.id, dueAtMs, call) : listed;
    // A page that is described can be a later one, or have more uploads.
    const uploads = await this.store.knownUploads(job.id, seenPosition, page.uploads);
    return { checked: walkPage(walk, page, uploads, nowMs), channel, next: page.next };
  }
}
