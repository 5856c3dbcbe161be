import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isChannelTranscriptsError, type ResultOf, type Subscription } from '@channel-transcripts/client';
import { parseChannelReference } from '../../domain/references/channel-reference.js';
import { parsePlaylistReference } from '../../domain/references/playlist-reference.js';
import { ChannelNotFoundError, counted, PlaylistNotFoundError } from '../../domain/errors.js';
import type { Start } from '../../jobs/job.js';
import {
  archiveForm,
  ArchiveFiles,
  ENTRIES_PER_READ,
  INDEX,
  INTERVAL_MS,
  labelsOf,
  listNamed,
  textsOf,
  type ArchiveForm,
  type ArchiveOptions,
  type ArchiveSource,
} from './archive-files.js';
import { readFollowedLists } from './followed-lists.js';
import { findFiles, folderName } from './file-names.js';
import { resultOf, type FolderState } from './folder-result.js';
import { unless, type LocalService } from './local-service.js';
import type { CommandResult } from './output.js';
import { QuotaNotice } from './quota-notice.js';

interface SubscriptionFlags {
  checkMinutes: number;
  start?: Start | undefined;
  keep?: boolean | undefined;
}

/** The options of the command. */
export type FollowFlags = { out: string; from?: string | undefined; once?: boolean } & SubscriptionFlags &
  Partial<ArchiveForm>;

/**
 * Follows channels and playlists in this process, and writes each new entry to a directory until the run is stopped, or once. The
 * directory has the subscription and the place in its feed, so that the next run goes on from there.
 *
 * @param named the lists as the caller names them, beside those of a file
 * @param stop ends the run
 * @param report shows a line about the progress instead of the one before, or a line that stays
 * @throws Error when none can be followed: it is not found, or the directory has something else or cannot be written
 */
export async function followLists(
  named: readonly string[],
  { out, from, once = false, keep, start, checkMinutes, ...given }: FollowFlags,
  service: LocalService,
  stop: AbortSignal,
  report: (line: string, stays?: boolean) => void,
): Promise<CommandResult> {
  const listed = from === undefined ? [] : await readFollowedLists(from);
  const references = new Map([...named, ...listed].map((reference) => [folderName(reference), reference]));
  if (references.size === 0) throw new Error('Nothing to follow. Name a channel or a playlist, or a file with --from.');
  const form = archiveForm(given);
  const files = await findFiles(out, form.format);
  // The library gets every text, also of videos that have a file.
  if (!keep) service.isElsewhere((videoId) => files.has(videoId));
  const runs = new Map<string, FollowRun>();
  const faults: string[] = [];
  /** Does some work for a list. One that fails does not end the others, but has no run any more. */
  const attempt = async (reference: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      await runs.get(reference)?.end();
      runs.delete(reference);
      faults.push(`${reference}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  const takeResults = async (): Promise<void> => {
    for (const [reference, run] of runs) await attempt(reference, () => run.takeResults());
  };
  for (const [name, reference] of references)
    await attempt(reference, async () => {
      const directory = await folderOf(reference, name, references.size === 1, { out, form });
      const folder = await ArchiveFiles.open({ out: directory, form }, files);
      const options = { out: directory, form, checkMinutes, start, keep };
      const subscription = await findOrCreate(reference, options, folder, service);
      runs.set(reference, new FollowRun(subscription, directory, service, folder, report));
    });
  const quota = new QuotaNotice(service.client, report);
  service.startWork();
  try {
    while (!stop.aborted) {
      await takeResults();
      if (runs.size === 0 || (once && (await haveEnded(runs.values())))) break;
      const subscriptions = [...runs.values()].map(({ subscription }) => subscription);
      await quota.update(subscriptions.find(isWithoutQuota) ?? { reason: null });
      report(progressOf([...runs.values()]));
      await sleep(INTERVAL_MS, undefined, { signal: stop }).catch(() => undefined);
    }
    await service.stopWork();
    await takeResults();
    if (runs.size === 0) throw new Error(faults.join(' '));
    const result = resultOf(await Promise.all([...runs.values()].map((run) => run.state())), out, faults);
    if (once) return result;
    const failure = faults.length > 0 ? result.failure : undefined;
    return { ...result, text: `${result.text ?? ''}\nStopped. The same command continues.`, failure };
  } finally {
    await service.stopWork();
    for (const run of runs.values()) await run.end();
  }
}

/** The folder of a list: the directory itself for the only one, else one in it, unless the directory was begun for this list. */
async function folderOf(
  reference: string,
  name: string,
  isOnly: boolean,
  { out, form }: ArchiveOptions,
): Promise<string> {
  const folder = join(out, name);
  if (existsSync(join(folder, INDEX))) return folder;
  if (isOnly) return out;
  const { source } = await ArchiveFiles.open({ out, form }, new Map());
  return isNamed(source, reference) ? out : folder;
}

async function haveEnded(runs: Iterable<FollowRun>): Promise<boolean> {
  for (const run of runs) if (!(await run.hasEnded())) return false;
  return true;
}

/** The subscription of the directory, or a new one, which begins above what the directory has. A check is due. */
async function findOrCreate(
  reference: string,
  { out, checkMinutes, keep = false, start: wanted, form: { format: _, ...form } }: ArchiveOptions & SubscriptionFlags,
  files: ArchiveFiles,
  service: LocalService,
): Promise<Subscription> {
  const { subscriptions } = service.client;
  const labels = labelsOf(out);
  const known = await findSubscription(reference, out, files, service);
  if (!known) {
    const start = wanted ?? files.start ?? 'now';
    return subscriptions.create(listNamed(reference), { checkMinutes, start, keep, labels, ...textsOf(form) });
  }
  if (!isFollowed(known, reference))
    throw new Error(`${out} is the directory of another list. Choose another directory.`);
  await subscriptions.change(known.id, { checkMinutes, keep, labels, state: 'active' });
  await service.check(known.id);
  return subscriptions.get(known.id);
}

/**
 * The subscription that the index names. Without an index it is the one that a run for this directory has left, unless that was removed
 * with its files: then all begins anew. Any other one is deleted.
 */
async function findSubscription(
  reference: string,
  out: string,
  files: ArchiveFiles,
  { client: { subscriptions } }: LocalService,
): Promise<Subscription | undefined> {
  const id = files.subscription?.id;
  let found = id === undefined ? undefined : await subscriptions.get(id).catch(unless('subscription_not_found'));
  for await (const left of subscriptions.list({ label: `directory:${labelsOf(out).directory}` })) {
    if (left.id === found?.id) continue;
    if (!found && id === undefined && files.isStarted && isFollowed(left, reference)) found = left;
    else await subscriptions.delete(left.id);
  }
  return found;
}

const handleOf = (text: string): string => text.replace(/^@/, '').toLowerCase();

/** Whether a text names a source, by an ID or handle; undefined when it names one in another way. */
function isNamed({ channel, playlist }: ArchiveSource, text: string): boolean | undefined {
  const list = parsePlaylistReference(text);
  if (list) return list.id === playlist?.id;
  const reference = parseChannelReference(text);
  if (reference?.kind === 'id') return reference.id === channel?.id;
  if (reference?.kind === 'handle' && channel?.handle) return handleOf(reference.handle) === handleOf(channel.handle);
  return undefined;
}

/** Whether a text names the source of a subscription, as the subscription does or by its ID or handle. */
function isFollowed({ request, channel, playlist }: Subscription, text: string): boolean {
  const isSame = text === (request.playlist ?? request.channel);
  return isSame || isNamed({ channel, playlist }, text) === true;
}

const isWithoutQuota = ({ reason }: Subscription): boolean => reason === 'plan_limit_exceeded';

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

  /** Whether the check of this run has ended and nothing more can be read now. */
  async hasEnded(): Promise<boolean> {
    const { id, reason, nextCheckAt, summary } = this.subscription;
    if (reason !== null) return true;
    if (nextCheckAt === this.dueAt || (nextCheckAt !== null && Date.parse(nextCheckAt) <= Date.now())) return false;
    return summary.pending === 0 || (await this.service.awaitedVideos(id)).every(({ due }) => !due);
  }

  /** What the directory has, with the pending uploads, which its index does not have. */
  async state(): Promise<FolderState> {
    const { id, channel, playlist, request, reason, checkedAt } = this.subscription;
    const pending = await this.service.awaitedVideos(id);
    return {
      source: { channel, playlist, subscription: this.subscription },
      reference: request.playlist ?? request.channel ?? id,
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
      const { id, channel, playlist, reason, checkedAt } = (this.subscription = subscription);
      if (reason === 'channel_not_found' && checkedAt === null) throw new ChannelNotFoundError();
      if (reason === 'playlist_not_found' && checkedAt === null) throw new PlaylistNotFoundError();
      if (!(channel ?? playlist)) return;
      if (this.after === undefined) await this.save({ id, after: '0' });
      // The last one that came is the first of the index. What it has failed for is final.
      for (const entry of results) await this.files.add(entry, (this.taken -= 1), () => false);
      if (next === this.after) return;
      await this.save({ id, after: next });
    }
  }

  private async save(subscription: { id: string; after: string }): Promise<void> {
    await this.files.save(this.subscription, { subscription });
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
      const { oldest, expired = 0 } = error.fields;
      const warning =
        `warning: ${counted(expired, 'result')} of ${request.playlist ?? request.channel} expired before a run took them. ` +
        'Run archive with this directory for the missing files.';
      if (expired > 0) this.report(warning, true);
      return this.readFeed(oldest);
    }
  }
}

/** What a terminal shows: when a list was checked last, and when the next one is. */
function progressOf(runs: readonly FollowRun[]): string {
  const all = runs.map(({ subscription }) => subscription);
  const reasons = [...new Set(all.flatMap(({ reason }) => reason ?? []))].map((reason) => `${reason}: `);
  const checked = all.flatMap(({ checkedAt }) => checkedAt ?? []).sort();
  const next = all.flatMap(({ nextCheckAt }) => nextCheckAt ?? []).sort();
  const time = (at: string | undefined): string => (at ? new Date(at).toTimeString().slice(0, 'hh:mm'.length) : '-');
  const written = runs.reduce((sum, { files }) => sum + files.written, 0);
  const pending = all.reduce((sum, { summary }) => sum + summary.pending, 0);
  return `${reasons.join('')}checked at ${time(checked.at(-1))}, next check at ${time(next[0])}, ${pending} pending, ${counted(written, 'new file')}`;
}
