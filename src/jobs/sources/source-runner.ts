import { createHash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { Registry, type Counter } from 'prom-client';
import { Environment } from '../../config/environment.js';
import { DomainError, UpstreamError } from '../../domain/errors.js';
import type { Upload } from '../../domain/transcript.js';
import { createCounter } from '../../observability/metrics-registry.js';
import { failSpan, inRootSpan } from '../../observability/tracing/tracer.js';
import { ContinuationRejectedError, VideoPlatform, type UploadsListPage } from '../../platform/video-platform.js';
import type { Call } from '../../transcripts/call.js';
import { ChannelUploads } from '../../transcripts/sources/channel-uploads.js';
import { logFailure, readList } from '../work/list-reading.js';
import { failureOf, type CheckedPage, type CheckFailure, type ClaimedSource } from './check.js';
import { SourceRepository } from './source.repository.js';
import { walkPage, type WalkStep } from './walk.js';

const CHECK_RESULTS = ['new', 'unchanged', 'unread'] as const;

/** What a check of a channel has found instead of a page. */
type Resolved = { resolved: Awaited<ReturnType<ChannelUploads['find']>> };

/** Runs claimed sources: reads a page of the list for a check, and what is new on it, or lets subscriptions take their turn. */
@Injectable()
export class SourceRunner {
  private readonly logger = new Logger(SourceRunner.name);
  private readonly checks: Counter<'result'>;

  constructor(
    private readonly store: SourceRepository,
    private readonly channels: ChannelUploads,
    private readonly platform: VideoPlatform,
    private readonly environment: Environment,
    registry: Registry,
  ) {
    const help =
      'Pages that this process read for checks of followed channels and playlists: with new uploads, without, or not read.';
    this.checks = createCounter(registry, 'ct_subscription_checks_total', help, { result: CHECK_RESULTS });
  }

  /**
   * Runs what is next at a source. Never rejects.
   *
   * @param stop ends the reading
   */
  async run(source: ClaimedSource, stop: AbortSignal): Promise<void> {
    const startedAtMs = performance.now();
    await inRootSpan('jobs.check', { 'jobs.source': source.id }, async (span) => {
      try {
        const { held, found } = source.isCheck
          ? await this.check(source, stop)
          : { held: await this.store.turn(source), found: 0 };
        const result = held ? 'committed' : 'lost';
        const durationMs = Math.round(performance.now() - startedAtMs);
        const facts = { sourceId: source.id, work: source.isCheck ? 'check' : 'turn', result, durationMs };
        this.logger.log({ event: 'source_finished', ...facts, counts: { found } });
      } catch (error) {
        failSpan(span, error instanceof DomainError ? error.code : '_OTHER');
        if (!stop.aborted) logFailure(this.logger, { event: 'source_failed', sourceId: source.id }, error);
        const restartList = error instanceof ContinuationRejectedError;
        const failure = failureOf(source, { type: stop.aborted ? 'stopped' : 'failed', restartList });
        const stored = source.isCheck ? this.fail(source, failure) : this.store.postponeTurn(source);
        // Without the database its claim ends by itself.
        await stored.catch(() => undefined);
      }
    });
  }

  private async check(source: ClaimedSource, stop: AbortSignal): Promise<{ held: boolean; found: number }> {
    let result: (typeof CHECK_RESULTS)[number] = 'unread';
    try {
      const options = { organizationId: '', responseEnd: stop, background: true };
      const read = await readList(this.environment.REQUEST_DEADLINE_SECONDS, options, (call) =>
        this.read(source, call),
      );
      if ('type' in read) return { held: await this.fail(source, failureOf(source, read)), found: 0 };
      result = 'unchanged';
      if ('resolved' in read) return { held: await this.store.resolve(source, read.resolved), found: 0 };
      const found = read.checked.added.length;
      if (found > 0) result = 'new';
      return { held: await this.store.commitPage(source, read), found };
    } finally {
      this.checks.inc({ result });
    }
  }

  private read(source: ClaimedSource, call: Call): Promise<CheckedPage | Resolved> {
    return source.kind === 'channel' ? this.channelPage(source, call) : this.playlistPage(source, call);
  }

  /** The dates and kinds, and the name of the channel, are read only when something is new. */
  private async channelPage(source: ClaimedSource, call: Call): Promise<CheckedPage | Resolved> {
    const { id, continuation, walk } = source;
    const known = source.header === null ? await this.channels.find(id, call) : null;
    if (known && known.id !== id) return { resolved: known };
    const page = await this.platform.uploads(id, continuation ?? undefined, call);
    if (page.uploads.length === 0 && page.incomplete && continuation === null)
      throw new UpstreamError('upstream_failure', new Error('The first page of the list cannot be read'));
    const read = await this.step(source, page, null);
    const { added, changed } = read.checked;
    if (added.length + changed.length === 0 && walk.starts.length === 0) return { ...read, header: known };
    const header = await this.channels.find(id, call);
    if (continuation !== null) return { ...read, header };
    return { ...(await this.step(source, await this.platform.describe(id, page, call), null)), header };
  }

  private async playlistPage(source: ClaimedSource, call: Call): Promise<CheckedPage> {
    const { playlist, stated, ...page } = await this.platform.playlist(
      source.id,
      source.continuation ?? undefined,
      call,
    );
    return { ...(await this.step(source, page, stated)), header: playlist };
  }

  /** @param stated how many videos the header of a first page states */
  private async step(
    source: ClaimedSource,
    page: UploadsListPage,
    stated: number | null,
  ): Promise<Omit<CheckedPage, 'header'>> {
    const { walk, nowMs, continuation, fingerprint: before } = source;
    const fingerprint = continuation === null ? fingerprintOf(page, stated) : null;
    const isUnchanged = before !== null && before === fingerprint && walk.starts.length === 0;
    const checked = isUnchanged
      ? nothingNew(walk.seesAll)
      : walkPage(walk, page, await this.store.knownUploads(source, page.uploads), nowMs);
    const hidden = page.next === null && page.incomplete && !isUnchanged ? page.hidden : null;
    return { checked, next: page.next, fingerprint, hidden };
  }

  private async fail(source: ClaimedSource, failure: CheckFailure): Promise<boolean> {
    const held = await this.store.commitFailure(source, failure);
    if (held && failure.pauses)
      this.logger.log({ event: 'source_unread', sourceId: source.id, reason: failure.reason });
    return held;
  }
}

/** A first page that is the same has nothing new, and nothing new below it. */
function fingerprintOf({ uploads, next }: UploadsListPage, stated: number | null): string {
  const facts = uploads.map(({ videoId, failure }: Upload) => `${videoId} ${failure}`);
  return createHash('sha256')
    .update([...facts, next === null, stated].join())
    .digest('base64url');
}

function nothingNew(seesAll: boolean): WalkStep {
  return { added: [], changed: [], ranked: [], decided: 'seen', end: 'ended', forStarts: false, seesAll };
}
