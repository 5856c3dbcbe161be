import { setTimeout as sleep } from 'node:timers/promises';
import { parseChannelReference } from '../../domain/channel-reference.js';
import { ChannelNotFoundError, counted } from '../../domain/errors.js';
import type { Channel } from '../../domain/transcript.js';
import type { SubscriptionDto } from '../../jobs/dto/subscription.dto.js';
import type { ResultsPart } from '../../jobs/job-store.js';
import {
  CheckRequestedError,
  CursorExpiredError,
  SubscriptionNotFoundError,
  type Start,
} from '../../jobs/subscription.js';
import type { SubscriptionsService } from '../../jobs/subscriptions.service.js';
import type { Payer } from '../../quota/quota.service.js';
import { ArchiveFiles, textsOf, type ArchiveForm } from './archive-files.js';
import type { CommandServices } from './command-services.js';
import { directoryKey, ENTRIES_PER_READ, INTERVAL_MS, SLICES_AT_ONCE } from './directory-run.js';

export interface FollowRequest {
  /** The channel as the caller names it. */
  channel: string;
  out: string;
  form: ArchiveForm;
  checkMinutes: number;
  start?: Start | undefined;
}

export interface FollowResult {
  subscription: SubscriptionDto;
  /** The number of files that the run has written. */
  written: number;
}

/**
 * Follows a channel in this process, and writes each new entry to a directory until the run is stopped. The directory has the
 * subscription and the place in its feed, so that the next run goes on from there.
 *
 * @param stop ends the run
 * @param report shows a line about the progress instead of the one before, or a line that stays
 * @throws ChannelNotFoundError, and Error when the directory has something else or cannot be written
 */
export async function followChannel(
  request: FollowRequest,
  services: CommandServices,
  stop: AbortSignal,
  report: (line: string, stays?: boolean) => void,
): Promise<FollowResult> {
  const files = await ArchiveFiles.open(request);
  const payer = await services.payer();
  const subscription = await findOrCreate(request, files, services.subscriptions, payer);
  services.worker.start(SLICES_AT_ONCE, payer.organizationId);
  return new FollowRun(subscription, payer, services, files, report).untilStopped(stop);
}

/** The subscription of the directory, or a new one, which begins above what the directory has. */
async function findOrCreate(
  { out, channel, checkMinutes, start, form }: FollowRequest,
  files: ArchiveFiles,
  subscriptions: SubscriptionsService,
  { organizationId, ...payer }: Payer,
): Promise<SubscriptionDto> {
  const known = files.subscription && (await unlessDeleted(subscriptions.get(organizationId, files.subscription.id)));
  if (!known) {
    const request = { channel, checkMinutes, start: start ?? files.start ?? 'now', ...textsOf(form) };
    // A run that was killed before it wrote the directory finds its subscription again.
    const key = directoryKey('follow', out, request);
    return subscriptions.create(request, { organizationId, ...payer }, key);
  }
  if (!isNamed(known, channel))
    throw new Error(`${out} is the directory of another channel. Choose another directory.`);
  const changed = await subscriptions.change(organizationId, known.id, { checkMinutes, state: 'active' });
  // One that was paused is checked at once; a killed run has left it active.
  if (known.state === 'paused') return changed;
  try {
    return await subscriptions.check(organizationId, known.id);
  } catch (error) {
    if (error instanceof CheckRequestedError) return changed;
    throw error;
  }
}

const handleOf = (text: string): string => text.replace(/^@/, '').toLowerCase();

/** Whether a text names the channel of a subscription, as the subscription does or by its ID or handle. */
function isNamed({ request, channel }: SubscriptionDto, text: string): boolean {
  const reference = parseChannelReference(text);
  if (reference?.kind === 'id' && channel) return reference.id === channel.id;
  if (reference?.kind === 'handle' && channel?.handle) return handleOf(reference.handle) === handleOf(channel.handle);
  return text === request.channel;
}

async function unlessDeleted(found: Promise<SubscriptionDto>): Promise<SubscriptionDto | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof SubscriptionNotFoundError) return undefined;
    throw error;
  }
}

/** The subscription of one run of the command. */
class FollowRun {
  private after: number | undefined;

  constructor(
    private subscription: SubscriptionDto,
    private readonly payer: Payer,
    private readonly services: CommandServices,
    private readonly files: ArchiveFiles,
    private readonly report: (line: string, stays?: boolean) => void,
  ) {
    if (files.subscription?.id === subscription.id) this.after = files.subscription.after;
  }

  async untilStopped(stop: AbortSignal): Promise<FollowResult> {
    const { subscriptions, background } = this.services;
    const [{ organizationId }, { id }] = [this.payer, this.subscription];
    try {
      while (!stop.aborted) {
        await this.takeResults();
        const { reason, checkedAt } = this.subscription;
        if (reason === 'channel_not_found' && checkedAt === null) throw new ChannelNotFoundError();
        this.report(progressOf(this.subscription, this.files.written));
        await sleep(INTERVAL_MS, undefined, { signal: stop }).catch(() => undefined);
      }
      await background.stop();
      await this.takeResults();
    } finally {
      await background.stop();
      // Until the next run no service does its work. What no directory has will not be continued.
      if (this.after !== undefined) await subscriptions.change(organizationId, id, { state: 'paused' });
      else await subscriptions.delete(organizationId, id);
    }
    return { subscription: this.subscription, written: this.files.written };
  }

  /** Writes the results that follow those which are written, and then the place after them. */
  private async takeResults(): Promise<void> {
    for (;;) {
      const { entries, next, owner } = await this.readFeed(this.after);
      const { id, channel } = (this.subscription = owner);
      if (!channel) return;
      if (this.after === undefined) await this.save(channel, { id, after: 0 });
      // The last one that came is the first of the index.
      for (const entry of entries) await this.files.add({ ...entry, position: -entry.sequence });
      if (next === this.after) return;
      await this.save(channel, { id, after: next });
    }
  }

  private async save(channel: Channel, subscription: { id: string; after: number }): Promise<void> {
    await this.files.save({ channel, playlist: null }, { subscription });
    this.after = subscription.after;
  }

  /** Reads a part of the feed; without the entries that have expired since the last run. */
  private async readFeed(after: number | undefined): Promise<ResultsPart<SubscriptionDto>> {
    const [{ organizationId }, { id, request }] = [this.payer, this.subscription];
    try {
      return await this.services.subscriptions.results(organizationId, id, { limit: ENTRIES_PER_READ, after });
    } catch (error) {
      if (!(error instanceof CursorExpiredError)) throw error;
      const lost = counted(error.oldest - (after ?? 0), 'result');
      this.report(
        `warning: ${lost} of ${request.channel} expired before a run took them. Run archive with this directory for the missing files.`,
        true,
      );
      return this.readFeed(error.oldest);
    }
  }
}

function progressOf({ state, reason, summary, checkedAt, nextCheckAt }: SubscriptionDto, written: number): string {
  const time = (at: string | null): string =>
    at === null ? 'soon' : new Date(at).toTimeString().slice(0, 'hh:mm'.length);
  const checked = checkedAt === null ? 'not checked yet' : `checked at ${time(checkedAt)}`;
  const pending = `${summary.pending} pending, ${counted(written, 'new file')}`;
  return `${reason ?? state}: ${checked}, next check at ${time(nextCheckAt)}, ${pending}`;
}
