import { setTimeout as sleep } from 'node:timers/promises';
import { isChannelTranscriptsError, type ResultOf, type Subscription } from '@channel-transcripts/client';
import { parseChannelReference } from '../../domain/references/channel-reference.js';
import { ChannelNotFoundError, counted } from '../../domain/errors.js';
import type { Channel } from '../../domain/transcript.js';
import type { Start } from '../../jobs/subscription.js';
import {
  archiveForm,
  ArchiveFiles,
  directoryKey,
  ENTRIES_PER_READ,
  INTERVAL_MS,
  textsOf,
  type ArchiveForm,
  type ArchiveOptions,
} from './archive-files.js';
import type { LocalService } from './local-service.js';
import type { CommandResult } from './output.js';
import { QuotaNotice } from './quota-notice.js';

/** The options of the command. */
export type FollowFlags = { out: string; checkMinutes: number; start?: Start | undefined } & Partial<ArchiveForm>;

/**
 * Follows a channel in this process, and writes each new entry to a directory until the run is stopped. The directory has the
 * subscription and the place in its feed, so that the next run goes on from there.
 *
 * @param channel as the caller names it
 * @param stop ends the run
 * @param report shows a line about the progress instead of the one before, or a line that stays
 * @throws ChannelTranscriptsError | ChannelNotFoundError, and Error when the directory has something else or cannot be written
 */
export async function followChannel(
  channel: string,
  { out, start, checkMinutes, ...form }: FollowFlags,
  service: LocalService,
  stop: AbortSignal,
  report: (line: string, stays?: boolean) => void,
): Promise<CommandResult> {
  const options = { out, form: archiveForm(form) };
  const files = await ArchiveFiles.open(options);
  const subscription = await findOrCreate(channel, { ...options, start, checkMinutes }, files, service);
  service.startWork();
  const run = new FollowRun(subscription, service, files, report);
  await run.untilStopped(stop);
  const { written } = files;
  const text = `Stopped: ${counted(written, 'new file')} in ${out}. The same command continues.`;
  return { json: { subscription: run.subscription, directory: out, written }, text };
}

/** The subscription of the directory, or a new one, which begins above what the directory has. */
async function findOrCreate(
  channel: string,
  {
    out,
    checkMinutes,
    start: wanted,
    form: { format: _, ...form },
  }: ArchiveOptions & Omit<FollowFlags, keyof ArchiveForm>,
  files: ArchiveFiles,
  { client: { subscriptions } }: LocalService,
): Promise<Subscription> {
  const known =
    files.subscription && (await subscriptions.get(files.subscription.id).catch(unless('subscription_not_found')));
  if (!known) {
    const start = wanted ?? files.start ?? 'now';
    // A run that was killed before it wrote the directory finds its subscription again.
    const idempotencyKey = directoryKey('follow', out, { channel, checkMinutes, start, ...form });
    return subscriptions.create(channel, { checkMinutes, start, ...textsOf(form), idempotencyKey });
  }
  if (!isNamed(known, channel))
    throw new Error(`${out} is the directory of another channel. Choose another directory.`);
  const changed = await subscriptions.change(known.id, { checkMinutes, state: 'active' });
  // One that was paused is checked at once; a killed run has left it active.
  if (known.state === 'paused') return changed;
  return (await subscriptions.check(known.id).catch(unless('rate_limited'))) ?? changed;
}

/** Accepts one error of a call, which then has no result. */
function unless(code: string) {
  return (error: unknown): undefined => {
    if (!isChannelTranscriptsError(error) || error.code !== code) throw error;
  };
}

const handleOf = (text: string): string => text.replace(/^@/, '').toLowerCase();

/** Whether a text names the channel of a subscription, as the subscription does or by its ID or handle. */
function isNamed({ request, channel }: Subscription, text: string): boolean {
  const reference = parseChannelReference(text);
  if (reference?.kind === 'id' && channel) return reference.id === channel.id;
  if (reference?.kind === 'handle' && channel?.handle) return handleOf(reference.handle) === handleOf(channel.handle);
  return text === request.channel;
}

/** The subscription of one run of the command. */
class FollowRun {
  /** The place in the feed up to which the directory has it; undefined until the index marks the directory. */
  private after: string | undefined;
  private taken = 0;
  private readonly quota: QuotaNotice;

  constructor(
    public subscription: Subscription,
    private readonly service: LocalService,
    private readonly files: ArchiveFiles,
    private readonly report: (line: string, stays?: boolean) => void,
  ) {
    this.quota = new QuotaNotice(service.client, report);
    if (files.subscription?.id === subscription.id) this.after = files.subscription.after;
  }

  async untilStopped(stop: AbortSignal): Promise<void> {
    try {
      while (!stop.aborted) {
        await this.takeResults();
        const { reason, checkedAt } = this.subscription;
        if (reason === 'channel_not_found' && checkedAt === null) throw new ChannelNotFoundError();
        await this.quota.update(this.subscription);
        this.report(progressOf(this.subscription, this.files.written));
        await sleep(INTERVAL_MS, undefined, { signal: stop }).catch(() => undefined);
      }
      await this.service.stopWork();
      await this.takeResults();
    } finally {
      await this.service.stopWork();
      const { id } = this.subscription;
      const { subscriptions } = this.service.client;
      // Until the next run no service does its work. What no directory has will not be continued.
      if (this.after !== undefined) await subscriptions.change(id, { state: 'paused' });
      else await subscriptions.delete(id);
    }
  }

  /** Writes the results that follow those which are written, and then the place after them. */
  private async takeResults(): Promise<void> {
    for (;;) {
      const { results, next, subscription } = await this.readFeed();
      const { id, channel } = (this.subscription = subscription);
      if (!channel) return;
      if (this.after === undefined) await this.save(channel, { id, after: '0' });
      // The last one that came is the first of the index.
      for (const entry of results) await this.files.add(entry, (this.taken -= 1));
      if (next === this.after) return;
      await this.save(channel, { id, after: next });
    }
  }

  private async save(channel: Channel, subscription: { id: string; after: string }): Promise<void> {
    await this.files.save({ channel, playlist: null }, { subscription });
    this.after = subscription.after;
  }

  /** Reads a part of the feed; without the entries that have expired since the last run. */
  private async readFeed(after = this.after): Promise<ResultOf<'getSubscriptionResults'>> {
    const { id, request } = this.subscription;
    const query = { limit: ENTRIES_PER_READ, ...(after !== undefined && { after }) };
    try {
      return await this.service.client.call('getSubscriptionResults', { path: { id }, query });
    } catch (error) {
      if (!isChannelTranscriptsError(error)) throw error;
      // Of a database that was restored: what comes again is not written again.
      if (error.code === 'cursor_unknown') return this.readFeed(error.fields.oldest);
      if (error.code !== 'results_expired' || error.fields.oldest === undefined) throw error;
      const lost = counted(error.fields.expired ?? 0, 'result');
      this.report(
        `warning: ${lost} of ${request.channel} expired before a run took them. Run archive with this directory for the missing files.`,
        true,
      );
      return this.readFeed(error.fields.oldest);
    }
  }
}

function progressOf({ state, reason, summary, checkedAt, nextCheckAt }: Subscription, written: number): string {
  const time = (at: string | null): string =>
    at === null ? 'soon' : new Date(at).toTimeString().slice(0, 'hh:mm'.length);
  const checked = checkedAt === null ? 'not checked yet' : `checked at ${time(checkedAt)}`;
  const pending = `${summary.pending} pending, ${counted(written, 'new file')}`;
  return `${reason ?? state}: ${checked}, next check at ${time(nextCheckAt)}, ${pending}`;
}
