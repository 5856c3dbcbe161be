import { Option, type Command } from 'commander';
import { ChannelNotFoundError, counted } from '../../domain/errors.js';
import { fieldsOf } from '../../http/routes/field.js';
import { JobFields } from '../../jobs/dto/jobs-request.dto.js';
import { CreateSubscriptionDto } from '../../jobs/dto/subscriptions-request.dto.js';
import { PlaylistQueryDto } from '../../transcripts/dto/transcripts-query.dto.js';
import { ENTRY_FORMATS } from '../../transcripts/response/transcripts-response.js';
import { ARCHIVE_FORMATS, archiveForm, ArchiveTexts, nameOf, type ArchiveForm } from './archive-files.js';
import { archiveList, type ArchiveRequest, type ArchiveResult } from './archive-run.js';
import type { CommandServices } from './command-services.js';
import { fieldOption } from './field-options.js';
import { refuseJson, type CommandResult, type RunWork } from './output.js';
import { followChannel, type FollowRequest } from './follow-run.js';
import { printTranscripts, type PrintOptions } from './print-transcripts.js';

const REFERENCE =
  'a channel (@handle, ID or URL), a playlist (ID or URL) or the URL of a video; without @, a text in the form of a playlist ID is one';
const LIST = 'a channel (@handle, ID or URL) or a playlist (ID or URL); for a video use transcripts';
const CLEAR_LINE = '\r\u001b[K';

/**
 * Adds `transcripts`, which prints what the service would respond, and `archive`, which runs an archive job and writes a
 * file for each video of a channel or a playlist. Both need neither the service nor a key.
 */
export function addTranscriptCommands(program: Command, run: RunWork): void {
  const transcripts = program
    .command('transcripts')
    .description('print the transcripts of a channel, a playlist or a video, without a service and keys')
    .argument('<reference>', REFERENCE)
    .addOption(fieldOption(PlaylistQueryDto, 'limit'))
    .addOption(
      new Option('--format <format>', 'text, srt and vtt for one video only').choices(ENTRY_FORMATS).default('json'),
    );
  addTextOptions(transcripts).action((reference: string, options: PrintOptions) => {
    if (options.format !== 'json') refuseJson(program, `--format ${options.format}`);
    return run((services) => printTranscripts(reference, options, services).catch(naming(REFERENCE)));
  });

  const archive = program
    .command('archive')
    .description(
      'write the transcripts of a channel or a playlist to a directory, a file per video; continues what was stopped',
    )
    .argument('<reference>', LIST)
    .requiredOption('--out <directory>', 'created unless it exists')
    .addOption(fieldOption(JobFields, 'limit', 'number of videos at most, the newest ones (default: all)'));
  writesFiles(archive, run, async (reference: string, { out, limit, ...form }: ArchiveFlags, services, stop) => {
    const request = { reference, out, limit, form: archiveForm(form) };
    return archiveResult(out, await archiveList(request, services, stop, showLine).catch(naming(LIST)));
  });
}

/** Adds the options of a command that writes files to a directory, and that the first signal ends early. The second one ends the process. */
function writesFiles<Flags>(
  command: Command,
  run: RunWork,
  work: (reference: string, flags: Flags, services: CommandServices, stop: AbortSignal) => Promise<CommandResult>,
): void {
  command.addOption(new Option('--format <format>', 'format of the files').choices(ARCHIVE_FORMATS).default('json'));
  addTextOptions(command).action((reference: string, flags: Flags) =>
    run(
      async (services) => {
        const stop = new AbortController();
        const abort = (): void => stop.abort();
        process.once('SIGINT', abort).once('SIGTERM', abort);
        try {
          return await work(reference, flags, services, stop.signal);
        } finally {
          process.off('SIGINT', abort).off('SIGTERM', abort);
          showLine('');
        }
      },
      { handlesSignals: true },
    ),
  );
}

/** Names all that a command takes: the error of the API names the forms of a channel alone. */
function naming(forms: string) {
  return (error: unknown): never => {
    throw error instanceof ChannelNotFoundError ? new Error(`Channel not found. Use ${forms}.`) : error;
  };
}

/** The options of `archive`: those that are absent have the defaults of an archive. */
type ArchiveFlags = Pick<ArchiveRequest, 'out' | 'limit'> & Partial<ArchiveForm>;

/** Adds the options for which videos are read, and how their texts are. */
function addTextOptions(command: Command): Command {
  for (const name of Object.keys(fieldsOf(ArchiveTexts))) command.addOption(fieldOption(ArchiveTexts, name));
  return command;
}

/** Adds `follow`, which keeps a directory up to date until it is stopped. */
export function addFollowCommand(program: Command, run: RunWork): void {
  const follow = program
    .command('follow')
    .description(
      'write the transcript of each new upload of a channel to a directory, until Ctrl-C; continues what was stopped',
    )
    .argument('<channel>', '@handle, ID or URL')
    .requiredOption('--out <directory>', 'created unless it exists; also that of an archive')
    .addOption(
      fieldOption(
        CreateSubscriptionDto,
        'start',
        'now, a number of the newest uploads, or the ID of the video above which to begin',
      ).default(undefined, 'the newest video of the directory, or now'),
    )
    .addOption(fieldOption(CreateSubscriptionDto, 'checkMinutes'));
  writesFiles(
    follow,
    run,
    async (channel: string, { out, start, checkMinutes, ...form }: FollowFlags, services, stop) => {
      const request = { channel, out, start, checkMinutes, form: archiveForm(form) };
      const { subscription, written } = await followChannel(request, services, stop, showLine);
      const text = `Stopped: ${counted(written, 'new file')} in ${out}. The same command continues.`;
      return { json: { subscription, directory: out, written }, text };
    },
  );
}

type FollowFlags = Pick<FollowRequest, 'out' | 'start' | 'checkMinutes'> & Partial<ArchiveForm>;

/** Shows a line on a terminal instead of the one before, or a line that stays. */
function showLine(line: string, stays = false): void {
  const { stderr } = process;
  if (stderr.isTTY) stderr.write(`${CLEAR_LINE}${stays ? '' : line.slice(0, stderr.columns - 1)}`);
  if (stays) stderr.write(`${line}\n`);
}

function archiveResult(
  directory: string,
  { channel, playlist, summary, written, awaited, retryAfterSeconds }: ArchiveResult,
): CommandResult {
  const { total, succeeded, pending } = summary;
  const minutes = Math.ceil(retryAfterSeconds / 60);
  const unread = pending > 0 ? counted(pending, 'video') : 'The rest of the list';
  const reasons = awaited.map(({ videoId, code }) => `${videoId} (${code})`);
  if (reasons.length > 0 && pending > reasons.length) reasons.push(`${pending - reasons.length} more`);
  const named = reasons.length > 0 ? `: ${reasons.join(', ')}.` : '.';
  return {
    json: { channel, playlist, directory, written, summary },
    text: `${nameOf({ channel, playlist })}: ${succeeded} of ${total} videos have a transcript, ${counted(written, 'new file')} in ${directory}.`,
    ...((pending > 0 || retryAfterSeconds > 0) && {
      failure: new Error(
        `${unread} could not be read yet. Run the same command again in ${minutes} min to retry${named}`,
      ),
    }),
  };
}
