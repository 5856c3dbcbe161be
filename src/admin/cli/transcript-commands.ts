import {
  isChannelTranscriptsError,
  type ChannelTranscriptsClient,
  type SearchOptions,
  type SearchResult,
} from '@channel-transcripts/client';
import { Option, type Command } from 'commander';
import { ChannelNotFoundError, counted } from '../../domain/errors.js';
import { parsePlaylistReference } from '../../domain/references/playlist-reference.js';
import { parseVideoReference } from '../../domain/references/video-reference.js';
import { JobFields } from '../../jobs/dto/jobs-request.dto.js';
import { CreateSubscriptionDto } from '../../jobs/dto/subscriptions-request.dto.js';
import { LibrarySearchQueryDto } from '../../library/dto/library-request.dto.js';
import { lineText } from '../../transcripts/formats/line-text.js';
import { PlaylistQueryDto } from '../../transcripts/dto/transcripts-query.dto.js';
import { ENTRY_FORMATS, ENTRY_MEDIA_TYPES, type EntryFormat } from '../../transcripts/response/transcripts-response.js';
import { archiveForm, ArchiveTexts, textsOf, type ArchiveForm } from './archive-files.js';
import { archiveList, type ArchiveFlags } from './archive-run.js';
import { withDirectoryLock } from './directory-lock.js';
import { fieldOption, fieldOptions, presetOption } from './field-options.js';
import { ARCHIVE_FORMATS } from './file-names.js';
import { followLists, type FollowFlags } from './follow-run.js';
import type { LocalService, withLocalService } from './local-service.js';
import { printBody, refuseJson, type CommandResult } from './output.js';

const REFERENCE =
  'a channel (@handle, ID or URL), a playlist (ID or URL) or the URL of a video; without @, a text in the form of a playlist ID is one';
const LIST = 'a channel (@handle, ID or URL) or a playlist (ID or URL); for a video use transcripts';
const CLEAR_LINE = '\r\u001b[K';

/** Does some work with a service in this process, and prints the result, if it has one. */
type RunLocal = (
  work: (service: LocalService) => Promise<CommandResult | void>,
  options?: Parameters<typeof withLocalService>[2],
) => Promise<void>;

/**
 * Adds `transcripts`, which prints what the service would respond, `archive`, which runs an archive job and writes a file for each
 * video of a channel or a playlist, `follow`, which keeps such a directory up to date, `search`, which searches what they
 * keep, and `mcp`, which serves an AI assistant. They need neither a service nor a key.
 */
export function addTranscriptCommands(program: Command, run: RunLocal): void {
  const transcripts = program
    .command('transcripts')
    .description('print the transcripts of a channel, a playlist or a video, without a service and keys')
    .argument('<reference>', REFERENCE)
    .addOption(fieldOption(PlaylistQueryDto, 'limit'))
    .addOption(fieldOption(PlaylistQueryDto, 'publishedAfter'))
    .addOption(
      new Option('--format <format>', 'text, srt and vtt for one video only').choices(ENTRY_FORMATS).default('json'),
    );
  addTextOptions(transcripts).action((reference: string, options: PrintFlags) => {
    if (options.format !== 'json') refuseJson(program, `--format ${options.format}`);
    const accept = ENTRY_MEDIA_TYPES[options.format];
    return run(({ client }) => call(reference, options, client).catch(naming(REFERENCE)), { accept, take: printBody });
  });

  const archive = program
    .command('archive')
    .description(
      'write the transcripts of a channel or a playlist to a directory, a file per video; reads only what has no file yet',
    )
    .argument('<reference>', LIST)
    .requiredOption('--out <directory>', 'created unless it exists')
    .addOption(fieldOption(JobFields, 'limit', 'number of videos at most, the newest ones (default: all)'));
  writesFiles(archive, run, (reference: string, flags: ArchiveFlags, service, stop) =>
    archiveList(reference, flags, service, stop, showLine).catch(naming(LIST)),
  );

  const search = program
    .command('search')
    .description('search what archive and follow have kept with --keep, without a service and keys')
    .argument('<words>', 'words, "a phrase", -without, beg*');
  for (const name of ['channel', 'language', 'publishedAfter', 'sort', 'limit'])
    search.addOption(fieldOption(LibrarySearchQueryDto, name));
  search.action((words: string, options: SearchOptions) =>
    run(async ({ client }) => {
      const json = await client.library.search(words, options);
      return { json, text: `${json.results.map(passageText).join('\n')}\n${counted(json.total, 'passage')}` };
    }),
  );

  const follow = program
    .command('follow')
    .description(
      'write the transcript of each new upload of channels and playlists to a directory, until Ctrl-C; continues what was stopped',
    )
    .argument('[reference...]', `${LIST}; each of several has a folder of its own`)
    .requiredOption('--out <directory>', 'created unless it exists; also that of an archive')
    .addOption(
      fieldOption(
        CreateSubscriptionDto,
        'start',
        'now, a number of the newest uploads, or the ID of the video above which to begin',
      ).default(undefined, 'the newest video of the directory, or now'),
    )
    .addOption(presetOption(CreateSubscriptionDto, 'checkMinutes'))
    .option('--from <file>', 'also the channels and playlists of a file: one a line, or OPML')
    .option('--once', 'check once, write what is new, and end: for cron');
  writesFiles(follow, run, (references: readonly string[], flags: FollowFlags, service, stop) =>
    followLists(references, flags, service, stop, showLine),
  );

  program
    .command('mcp')
    .description('serve an AI assistant over standard input and output (MCP), without a service and keys')
    .action(() => {
      const serve = (service: LocalService): Promise<void> => {
        service.startWork();
        return untilSignal((stop) => service.serveMcp(stop));
      };
      return run(serve, { handlesSignals: true });
    });
}

/** A passage as a paragraph with its link. */
function passageText({ title, videoId, url, text }: SearchResult): string {
  return `${lineText(title ?? videoId)}  ${url}\n${lineText(text)}\n`;
}

/** Calls the service for a channel, a playlist or a video. */
async function call(
  reference: string,
  { limit, kinds, publishedAfter, format, ...form }: PrintFlags,
  client: ChannelTranscriptsClient,
): Promise<void> {
  // A text without a slash can be a handle as well as the ID of a video. As over HTTP a handle needs no `@`.
  const videoId = reference.includes('/') ? parseVideoReference(reference) : undefined;
  if (videoId === undefined && format !== 'json' && format !== 'markdown')
    throw new Error(`${format} is a format of one video. Use the URL of a video, or --format markdown.`);
  if (videoId !== undefined && (limit ?? kinds ?? publishedAfter) !== undefined)
    throw new Error('--limit, --kinds and --published-after are for a channel or a playlist. Omit them for a video.');
  const texts = textsOf(archiveForm(form));
  const selection = {
    ...texts,
    ...(kinds && { kinds }),
    ...(limit !== undefined && { limit }),
    ...(publishedAfter && { publishedAfter }),
  };
  if (videoId !== undefined) await client.video(videoId, texts);
  else if (parsePlaylistReference(reference)) await client.playlist(reference, selection);
  else await client.transcripts(reference, selection);
}

/** Adds the options of a command that writes files to a directory, and that the first signal ends early. The second one ends the process. */
function writesFiles<Named, Flags extends { out: string }>(
  command: Command,
  run: RunLocal,
  work: (named: Named, flags: Flags, service: LocalService, stop: AbortSignal) => Promise<CommandResult>,
): void {
  command
    .addOption(new Option('--keep', 'keep the texts in the library, for search'))
    .addOption(new Option('--format <format>', 'format of the files').choices(ARCHIVE_FORMATS).default('json'))
    .addOption(new Option('--front-matter', 'YAML above Markdown').implies({ format: 'markdown' }));
  addTextOptions(command).action((named: Named, flags: Flags) =>
    run(
      (service) =>
        untilSignal((stop) => withDirectoryLock(flags.out, () => work(named, flags, service, stop))).finally(() => {
          showLine('');
        }),
      { handlesSignals: true },
    ),
  );
}

/** Does some work that the first signal ends early. The second one ends the process. */
async function untilSignal<T>(work: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  process.once('SIGINT', abort).once('SIGTERM', abort);
  try {
    return await work(stop.signal);
  } finally {
    process.off('SIGINT', abort).off('SIGTERM', abort);
  }
}

/** Names all that a command takes: the error of the API names the forms of a channel alone. */
function naming(forms: string) {
  return (error: unknown): never => {
    const unknown =
      error instanceof ChannelNotFoundError || (isChannelTranscriptsError(error) && error.code === 'channel_not_found');
    throw unknown ? new Error(`Channel not found. Use ${forms}.`) : error;
  };
}

type PrintFlags = Partial<Omit<ArchiveForm, 'format' | 'frontMatter'>> &
  Pick<PlaylistQueryDto, 'publishedAfter'> & { format: EntryFormat; limit?: number };

/** Adds the options for which videos are read, and how their texts are. */
function addTextOptions(command: Command): Command {
  for (const option of fieldOptions(ArchiveTexts)) command.addOption(option);
  return command;
}

/** Shows a line on a terminal instead of the one before, or a line that stays. */
function showLine(line: string, stays = false): void {
  const { stderr } = process;
  if (stderr.isTTY) stderr.write(`${CLEAR_LINE}${stays ? '' : line.slice(0, stderr.columns - 1)}`);
  if (stays) stderr.write(`${line}\n`);
}
