import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isChannelTranscriptsError, type ResultOf, type Subscription } from '@channel-transcripts/client';
import { parseChannelReference } from '../../domain/references/channel-reference.js';
import { ChannelNotFoundError, counted } from '../../domain/errors.js';
import type { Channel } from '../../domain/transcript.js';
import type { Start } from '../../jobs/job.js';
import {
  archiveForm,
  ArchiveFiles,
  ENTRIES_PER_READ,
  INDEX,
  INTERVAL_MS,
  labelsOf,
  textsOf,
  type ArchiveForm,
  type ArchiveOptions,
} from './archive-files.js';
import { readChannelList } from './channel-list.js';
import { findFiles, folderName } from './file-names.js';
import { countsOf, folderResult, type FolderState } from './folder-result.js';
import { unless, type LocalService } from './local-service.js';
import { TryLaterError, type CommandResult } from './output.js';
import { QuotaNotice } from './quota-notice.js';

interface SubscriptionFlags {
  checkMinutes: number;
  start?: Start | undefined;
}

/** The options of the command. */
export type FollowFlags = {
  out: string;
  from?: string | undefined;
  once?: boolean;
  keep?: boolean | undefined;
} & SubscriptionFlags &
  Partial<ArchiveForm>;

/** A run for one of the channels, or why there is none. */
interface FollowedChannel {
  channel: string;
  run?: FollowRun;
  error?: unknown;
}

/**
 * Follows channels in this process, and writes each new entry to a directory until the run is stopped, or once. The directory has the
 * subscription and the place in its feed, so that the next run goes on from there.
 *
 * @param named the channels as the caller names them, beside those of a file
 * @param stop ends the run
 * @param report shows a line about the progress instead of the one before, or a line that stays
 * @throws ChannelTranscriptsError | ChannelNotFoundError, and Error when the directory has something else or cannot be written
 */
export async function followChannels(
  named: readonly string[],
  { out, from, once = false, keep, start, checkMinutes, ...given }: FollowFlags,
  service: LocalService,
  stop: AbortSignal,
  report: (line: string, stays?: boolean) => void,
): Promise<CommandResult> {
  const listed = from === undefined ? [] : await readChannelList(from);
  const channels = new Map([...named, ...listed].map((channel) => [folderName(channel), channel]));
  if (channels.size === 0) throw new Error('No channel to follow. Name one, or a file with --from.');
  const form = archiveForm(given);
  const files = await findFiles(out, form.format);
  // The library gets every text, also of videos that have a file.
  if (!keep) service.isElsewhere((videoId) => files.has(videoId));
  const followed: FollowedChannel[] = [];
  for (const [name, channel] of channels) {
    const directory = await folderOf({ channel, name, isOnly: channels.size === 1 }, { out, form });
    const open = async (): Promise<FollowRun> => {
      const folder = await ArchiveFiles.open({ out: directory, form }, files);
      const options = { out: directory, form, checkMinutes, start, keep };
      return new FollowRun(await findOrCreate(channel, options, folder, service), directory, service, folder, report);
    };
    followed.push(
      await open().then(
        (run) => ({ channel, run }),
        (error: unknown) => ({ channel, error }),
      ),
    );
  }
  const quota = new QuotaNotice(service.client, report);
  service.startWork();
  try {
    while (!stop.aborted) {
      await forEachRun(followed, (run) => run.takeResults());
      const runs = followed.flatMap(({ run }) => run ?? []);
      if (runs.length === 0 || (once && (await haveEnded(runs)))) break;
      await quota.update(runs.find(({ isWithoutQuota }) => isWithoutQuota)?.subscription ?? { reason: null });
      report(progressOf(runs));
      await sleep(INTERVAL_MS, undefined, { signal: stop }).catch(() => undefined);
    }
    await service.stopWork();
    await forEachRun(followed, (run) => run.takeResults());
    return await resultOf(followed, { out, once });
  } finally {
    await service.stopWork();
    for (const { run } of followed) await run?.end();
  }
}

/** The folder of a channel: the directory itself for the only one, else one in it, unless the directory was begun for this channel. */
async function folderOf(
  { channel, name, isOnly }: { channel: string; name: string; isOnly: boolean },
  { out, form }: ArchiveOptions,
): Promise<string> {
  const folder = join(out, name);
  if (existsSync(join(folder, INDEX))) return folder;
  if (isOnly) return out;
  const { channel: own } = await ArchiveFiles.open({ out, form }, new Map());
  return own && isNamed(own, channel) ? out : folder;
}

/** Does some work for each channel. One that fails does not end the others, but has no run any more. */
async function forEachRun(
  followed: readonly FollowedChannel[],
  work: (run: FollowRun) => Promise<void>,
): Promise<void> {
  for (const each of followed) {
    if (!each.run) continue;
    try {
      await work(each.run);
    } catch (error) {
      await each.run.end();
      delete each.run;
      each.error = error;
    }
  }
}

async function haveEnded(runs: readonly FollowRun[]): Promise<boolean> {
  for (const run of runs) if (!(await run.hasEnded())) return false;
  return true;
}

/** The results of all channels, and a last line for them together. @throws the error of the only channel */
async function resultOf(
  followed: readonly FollowedChannel[],
  { out, once }: { out: string; once: boolean },
): Promise<CommandResult> {
  const failures = followed.filter(({ run }) => !run);
  if (followed.length === 1 && failures[0]) throw failures[0].error;
  const states: FolderState[] = [];
  const results: CommandResult[] = [];
  for (const { run } of followed) {
    if (!run) continue;
    const state = await run.state();
    states.push(state);
    results.push(folderResult(state, { channel: run.subscription.channel, subscription: run.subscription }));
  }
  const reasons = failures.map(
    ({ channel, error }) => `${channel}: ${error instanceof Error ? error.message : String(error)}`,
  );
  const isLate = results.some((result) => result.failure);
  const failure = failures.length > 0 ? new Error(reasons.join(' ')) : once && isLate ? new TryLaterError() : undefined;
  const end = once ? '' : '\nStopped. The same command continues.';
  const [only] = results;
  if (followed.length === 1 && only) return { ...only, text: `${only.text}${end}`, failure };
  const total = { complete: 0, late: 0, failed: 0, written: 0 };
  for (const state of states) {
    const { complete, late, failed } = countsOf(state);
    total.complete += complete;
    total.late += late;
    total.failed += failed;
    total.written += state.files.written;
  }
  const line = `${states.length} of ${counted(followed.length, 'channel')}: ${total.complete} complete (${total.written} new), ${total.late} late, ${total.failed} failed in ${out}.`;
  const text = [...results.map((result) => result.text), line].join('\n') + end;
  return {
    json: { directory: out, ...total, channels: followed.length, unread: reasons },
    lines: results.map(({ json }) => json),
    text,
    failure,
  };
}

/** The subscription of the directory, or a new one, which begins above what the directory has. A check is due. */
async function findOrCreate(
  channel: string,
  {
    out,
    checkMinutes,
    keep = false,
    start: wanted,
    form: { format: _, ...form },
  }: ArchiveOptions & SubscriptionFlags & Pick<FollowFlags, 'keep'>,
  files: ArchiveFiles,
  service: LocalService,
): Promise<Subscription> {
  const { subscriptions } = service.client;
  const labels = labelsOf(out);
  const known = await findSubscription(channel, out, files, service);
  if (!known) {
    const start = wanted ?? files.start ?? 'now';
    return subscriptions.create(channel, { checkMinutes, start, keep, labels, ...textsOf(form) });
  }
  if (!isFollowed(known, channel))
    throw new Error(`${out} is the directory of another channel. Choose another directory.`);
  await subscriptions.change(known.id, { checkMinutes, keep, labels, state: 'active' });
  await service.check(known.id);
  return subscriptions.get(known.id);
}

/**
 * The subscription that the index names. Without an index it is the one that a run for this directory has left, unless that was removed
 * with its files: then all begins anew. Any other one is deleted.
 */
async function findSubscription(
  channel: string,
  out: string,
  files: ArchiveFiles,
  { client: { subscriptions } }: LocalService,
): Promise<Subscription | undefined> {
  const id = files.subscription?.id;
  let found = id === undefined ? undefined : await subscriptions.get(id).catch(unless('subscription_not_found'));
  for await (const left of subscriptions.list({ label: `directory:${labelsOf(out).directory}` })) {
    if (left.id === found?.id) continue;
    if (!found && id === undefined && files.isStarted && isFollowed(left, channel)) found = left;
    else await subscriptions.delete(left.id);
  }
  return found;
}

const handleOf = (text: string): string => text.replace(/^@/, '').toLowerCase();

/** Whether a text names a channel, by its ID or handle; undefined when it names one in another way. */
function isNamed(channel: Channel, text: string): boolean | undefined {
  const reference = parseChannelReference(text);
  if (reference?.kind === 'id') return reference.id === channel.id;
  if (reference?.kind === 'handle' && channel.handle) return handleOf(reference.handle) === handleOf(channel.handle);
  return undefined;
}

/** Whether a text names the channel of a subscription, as the subscription does or by its ID or handle. */
function isFollowed({ request, channel }: Subscription, text: string): boolean {
  return (channel && isNamed(channel, text)) ?? text === request.channel;
}

/** The subscription of one run of the command. */
class FollowRun {
  /** The place in the feed up to which the directory has it; undefined until the index marks the directory. */
  private after: string | undefined;
  private taken = 0;
  /** When the check of this run was due. */
  private readonly dueAt: string | null;
  private readonly checkedBefore: string | null;

  constructor(
    public subscription: Subscription,
    private readonly directory: string,
    private readonly service: LocalService,
    readonly files: ArchiveFiles,
    private readonly report: (line: string, stays?: boolean) => void,
  ) {
    this.dueAt = subscription.nextCheckAt;
    this.checkedBefore = subscription.checkedAt;
    if (files.subscription?.id === subscription.id) this.after = files.subscription.after;
  }

  get isWithoutQuota(): boolean {
    return this.subscription.reason === 'plan_limit_exceeded';
  }

  /** Whether the check of this run has ended and nothing more can be read now. */
  async hasEnded(): Promise<boolean> {
    const { id, reason, nextCheckAt, summary } = this.subscription;
    if (reason !== null) return true;
    if (nextCheckAt === this.dueAt || (nextCheckAt !== null && Date.parse(nextCheckAt) <= Date.now())) return false;
    return summary.pending === 0 || (await this.service.awaitedVideos(id)).every(({ due }) => !due);
  }

  /** What the directory has, with the pending uploads, which its index does not have. */
  async state(): Promise<FolderState> {
    const { id, channel, request, reason, checkedAt } = this.subscription;
    const pending = await this.service.awaitedVideos(id);
    return {
      name: channel?.name ?? request.channel ?? id,
      ...{ directory: this.directory, files: this.files, untried: pending.length },
      late: [...pending.map(({ videoId, code }) => ({ videoId, code: code ?? 'untried' })), ...this.files.late()],
      isIncomplete: reason !== null || checkedAt === this.checkedBefore,
    };
  }

  /** Until the next run no service does its work. What no directory has will not be continued. */
  async end(): Promise<void> {
    const { subscriptions } = this.service.client;
    const { id } = this.subscription;
    if (this.after !== undefined) await subscriptions.change(id, { state: 'paused' });
    else await subscriptions.delete(id);
  }

  /** Writes the results that follow those which are written, and then the place after them. */
  async takeResults(): Promise<void> {
    for (;;) {
      const { results, next, subscription } = await this.readFeed();
      const { id, channel, reason, checkedAt } = (this.subscription = subscription);
      if (reason === 'channel_not_found' && checkedAt === null) throw new ChannelNotFoundError();
      if (!channel) return;
      if (this.after === undefined) await this.save(channel, { id, after: '0' });
      // The last one that came is the first of the index. What it has failed for is final.
      for (const entry of results) await this.files.add(entry, (this.taken -= 1), () => false);
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

/** What a terminal shows of one channel, or of several together. */
function progressOf(runs: readonly FollowRun[]): string {
  const [first] = runs;
  const written = runs.reduce((sum, { files }) => sum + files.written, 0);
  const pending = runs.reduce((sum, { subscription }) => sum + subscription.summary.pending, 0);
  const facts = `${pending} pending, ${counted(written, 'new file')}`;
  if (!first || runs.length > 1) return `${counted(runs.length, 'channel')}: ${facts}`;
  const { state, reason, checkedAt, nextCheckAt } = first.subscription;
  const time = (at: string | null): string =>
    at === null ? 'soon' : new Date(at).toTimeString().slice(0, 'hh:mm'.length);
  const checked = checkedAt === null ? 'not checked yet' : `checked at ${time(checkedAt)}`;
  return `${reason ?? state}: ${checked}, next check at ${time(nextCheckAt)}, ${facts}`;
}
