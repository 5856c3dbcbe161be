import { Injectable } from '@nestjs/common';
import { Registry, type Counter } from 'prom-client';
import { createCounter } from '../../observability/metrics-registry.js';
import { VideoPlatform, type UploadsListPage } from '../../platform/video-platform.js';
import type { Call } from '../../transcripts/call.js';
import { ChannelUploads } from '../../transcripts/sources/channel-uploads.js';
import { NewestUploads } from '../../transcripts/sources/newest-uploads.js';
import type { CheckedPage } from './check.js';
import { SliceRepository } from './slice.repository.js';
import type { ClaimedSlice } from './slice.js';
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
    registry: Registry,
  ) {
    this.checks = createCounter(
      registry,
      'ct_subscription_checks_total',
      'Pages that this process read for checks of subscriptions: with new uploads, without, or not read.',
      { result: CHECK_RESULTS },
    );
  }

  /** Reads one page; throws as `SliceReader.page` does. */
  async page(slice: ClaimedSlice, call: Call): Promise<CheckedPage> {
    let result: (typeof CHECK_RESULTS)[number] = 'unread';
    try {
      const read = await this.read(slice, call);
      result = read.checked.added.length > 0 ? 'new' : 'unchanged';
      return read;
    } finally {
      this.checks.inc({ result });
    }
  }

  /** The dates and kinds, and the name of the channel, are read only when something is new. */
  private async read({ job, continuation, nowMs, subscription }: ClaimedSlice, call: Call): Promise<CheckedPage> {
    if (!subscription) throw new Error('Only subscriptions have checks.');
    const { walk, dueAtMs } = subscription;
    const known = job.channel ?? (await this.channels.find(job.request.channel ?? '', call));
    const step = async (page: UploadsListPage): Promise<Omit<CheckedPage, 'channel'>> => {
      const uploads = await this.store.knownUploads(job.id, page.uploads);
      return { checked: walkPage(walk, page, uploads, nowMs), next: page.next };
    };
    const listed = await step(
      continuation === null
        ? await this.newest.page(known.id, dueAtMs, call)
        : await this.platform.uploads(known.id, continuation, call),
    );
    const { added, changed } = listed.checked;
    if (added.length + changed.length === 0) return { ...listed, channel: known };
    const channel = await this.channels.find(known.id, call);
    // A page that is described can be a later one, or have more uploads.
    const read = continuation === null ? await step(await this.newest.described(known.id, dueAtMs, call)) : listed;
    return { ...read, channel };
  }
}
