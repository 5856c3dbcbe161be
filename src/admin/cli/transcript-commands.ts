import { isChannelTranscriptsError, type ChannelTranscriptsClient } from '@channel-transcripts/client';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseWholeNumber } from '../../config/variables.js';
import { ChannelNotFoundError } from '../../domain/errors.js';
import { LANGUAGE_MATCHES } from '../../domain/language-codes.js';
import { parsePlaylistReference } from '../../domain/playlist-reference.js';
import { INCLUDABLE, VIDEO_KINDS } from '../../domain/transcript.js';
import { parseVideoReference } from '../../domain/video-reference.js';
import {
  CHECK_MINUTES_DEFAULT,
  CHECK_MINUTES_MAX,
  CHECK_MINUTES_MIN,
  isStart,
  START_UPLOADS_MAX,
  type Start,
} from '../../jobs/subscription.js';
import {
  CHUNK_SECONDS_MAX,
  CHUNK_SECONDS_MIN,
  LANGUAGES_INVALID,
  LIMIT_DEFAULT,
  parseLanguages,
} from '../../transcripts/dto/transcripts-query.dto.js';
import { ENTRY_FORMATS, ENTRY_MEDIA_TYPES, type EntryFormat } from '../../transcripts/response/transcripts-response.js';
import { ARCHIVE_FORMATS, archiveForm, textsOf, type ArchiveForm } from './archive-files.js';
import { archiveList, type ArchiveFlags } from './archive-run.js';
import { wholeNumberArgument, wordsArgument } from './field-options.js';
import { followChannel, type FollowFlags } from './follow-run.js';
import type { LocalService, withLocalService } from './local-service.js';
import { refuseJson, type CommandResult } from './output.js';

const REFERENCE =
  'a channel (@handle, ID or URL), a playlist (ID or URL) or the URL of a video; without @, a text in the form of a playlist ID is one';
const LIST = 'a channel (@handle, ID or URL) or a playlist (ID or URL); for a video use transcripts';
const CLEAR_LINE = '\r\u001b[K';

const languagesOption = (): Option =>
  new Option(
    '--languages <codes>',
    'language codes in order of preference, such as en,de; * last for the original language',
  )
    .default([], 'the original language')
    .argParser((codes) => {
      const languages = parseLanguages(codes);
      if (!languages) throw new InvalidArgumentError(LANGUAGES_INVALID);
      return languages;
    });

function wordsOption(flags: string, description: string, words: readonly string[]): Option {
  return new Option(flags, `${description}: ${words.join()}`).argParser(wordsArgument(words));
}

/** Does some work with a service in this process, and prints the result. */
type RunLocal = (
  work: (service: LocalService) => Promise<CommandResult>,
  options?: Parameters<typeof withLocalService>[2],
) => Promise<void>;

/**
 * Adds `transcripts`, which prints what the service would respond, `archive`, which runs an archive job and writes a file for each
 * video of a channel or a playlist, and `follow`, which keeps such a directory up to date. They need neither a service nor a key.
 */
export function addTranscriptCommands(program: Command, run: RunLocal): void {
  const transcripts = program
    .command('transcripts')
    .description('print the transcripts of a channel, a playlist or a video, without a service and keys')
    .argument('<reference>', REFERENCE)
    .option('--limit <n>', `number of videos at most (default: ${LIMIT_DEFAULT})`, wholeNumberArgument(1))
    .addOption(
      new Option('--format <format>', 'text, srt and vtt for one video only').choices(ENTRY_FORMATS).default('json'),
    );
  addTextOptions(transcripts).action((reference: string, options: PrintFlags) => {
    if (options.format !== 'json') refuseJson(program, `--format ${options.format}`);
    const accept = ENTRY_MEDIA_TYPES[options.format];
    return run(({ client }) => printed(reference, options, client).catch(naming(REFERENCE)), { accept });
  });

  const archive = program
    .command('archive')
    .description(
      'write the transcripts of a channel or a playlist to a directory, a file per video; continues what was stopped',
    )
    .argument('<reference>', LIST)
    .requiredOption('--out <directory>', 'created unless it exists')
    .option('--limit <n>', 'number of videos at most, the newest ones (default: all)', wholeNumberArgument(1));
  writesFiles(archive, run, (reference, flags: ArchiveFlags, service, stop) =>
    archiveList(reference, flags, service, stop, showLine).catch(naming(LIST)),
  );

  const follow = program
    .command('follow')
    .description(
      'write the transcript of each new upload of a channel to a directory, until Ctrl-C; continues what was stopped',
    )
    .argument('<channel>', '@handle, ID or URL')
    .requiredOption('--out <directory>', 'created unless it exists; also that of an archive')
    .addOption(
      new Option('--start <start>', 'now, a number of the newest uploads, or the ID of the video above which to begin')
        .default(undefined, 'the newest video of the directory, or now')
        .argParser(startArgument),
    )
    .option(
      '--check-minutes <n>',
      'minutes between two checks',
      wholeNumberArgument(CHECK_MINUTES_MIN, CHECK_MINUTES_MAX),
      CHECK_MINUTES_DEFAULT,
    );
  writesFiles(follow, run, (channel, flags: FollowFlags, service, stop) =>
    followChannel(channel, flags, service, stop, showLine),
  );
}

/** What the service responds about a channel, a playlist or a video. */
async function printed(
  reference: string,
  { limit, kinds, format, ...form }: PrintFlags,
  client: ChannelTranscriptsClient,
): Promise<CommandResult> {
  // A text without a slash can be a handle as well as the ID of a video. As over HTTP a handle needs no `@`.
  const videoId = reference.includes('/') ? parseVideoReference(reference) : undefined;
  if (videoId === undefined && format !== 'json' && format !== 'markdown')
    throw new Error(`${format} is a format of one video. Use the URL of a video, or --format markdown.`);
  if (videoId !== undefined && (limit ?? kinds) !== undefined)
    throw new Error('--limit and --kinds are for a channel or a playlist. Omit them for a video.');
  const texts = textsOf(archiveForm({ ...form, format: 'json' }));
  const selection = { ...texts, ...(kinds && { kinds }), ...(limit !== undefined && { limit }) };
  const call = () => {
    if (videoId !== undefined) return client.video(videoId, texts);
    return parsePlaylistReference(reference)
      ? client.playlist(reference, selection)
      : client.transcripts(reference, selection);
  };
  // The types of the client are those of JSON, in which it asks unless a header says otherwise.
  const body: object | string = await call();
  return typeof body === 'string' ? { json: {}, text: body } : { json: body, text: JSON.stringify(body) };
}

/** Adds the options of a command that writes files to a directory, and that the first signal ends early. The second one ends the process. */
function writesFiles<Flags>(
  command: Command,
  run: RunLocal,
  work: (reference: string, flags: Flags, service: LocalService, stop: AbortSignal) => Promise<CommandResult>,
): void {
  command.addOption(new Option('--format <format>', 'format of the files').choices(ARCHIVE_FORMATS).default('json'));
  addTextOptions(command).action((reference: string, flags: Flags) =>
    run(
      async (service) => {
        const stop = new AbortController();
        const abort = (): void => stop.abort();
        process.once('SIGINT', abort).once('SIGTERM', abort);
        try {
          return await work(reference, flags, service, stop.signal);
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
    const unknown =
      error instanceof ChannelNotFoundError || (isChannelTranscriptsError(error) && error.code === 'channel_not_found');
    throw unknown ? new Error(`Channel not found. Use ${forms}.`) : error;
  };
}

type PrintFlags = Partial<Omit<ArchiveForm, 'format'>> & { format: EntryFormat; limit?: number };

/** Adds the options for which videos are read, and how their texts are. */
function addTextOptions(command: Command): Command {
  return command
    .addOption(wordsOption('--kinds <kinds>', 'the kinds of videos', VIDEO_KINDS))
    .addOption(languagesOption())
    .addOption(new Option('--match <match>', 'which of the languages').choices(LANGUAGE_MATCHES).default('all'))
    .addOption(wordsOption('--include <names>', 'what to add to the metadata', INCLUDABLE))
    .option(
      '--chunk-seconds <n>',
      'join segments to chunks of about n seconds',
      wholeNumberArgument(CHUNK_SECONDS_MIN, CHUNK_SECONDS_MAX),
    );
}

function startArgument(text: string): Start {
  const start = parseWholeNumber(text) ?? text;
  if (!isStart(start))
    throw new InvalidArgumentError(`Use now, a number from 1 to ${START_UPLOADS_MAX}, or the ID of a video.`);
  return start;
}

/** Shows a line on a terminal instead of the one before, or a line that stays. */
function showLine(line: string, stays = false): void {
  const { stderr } = process;
  if (stderr.isTTY) stderr.write(`${CLEAR_LINE}${stays ? '' : line.slice(0, stderr.columns - 1)}`);
  if (stays) stderr.write(`${line}\n`);
}
