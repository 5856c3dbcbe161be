/** Where the adapter tells an operator what it met: Nest's Logger, or anything with the same two methods. */
export interface EventLog {
  log(message: object): void;
  warn(message: object): void;
}

/** The names of the events, so that an operator can search for them. */
export type YoutubeEvent =
  | 'youtube_unknown_playability'
  | 'youtube_unreadable'
  | 'youtube_block_opened'
  | 'youtube_block_closed'
  | 'youtube_exit_rested'
  | 'youtube_client_rested'
  | 'youtube_client_back'
  | 'youtube_fields_not_honoured'
  | 'youtube_side_list_failed'
  | 'youtube_internal_error';

/** Words of the platform are cut to this before they are logged. */
const WORDS_LENGTH_MAX = 200;

/** Reports one event with its fields; texts are shortened. */
export function report(
  log: EventLog,
  level: 'log' | 'warn',
  event: YoutubeEvent,
  fields: Readonly<Record<string, unknown>>,
): void {
  const shortened = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.slice(0, WORDS_LENGTH_MAX) : value,
  ]);
  log[level]({ event, ...(Object.fromEntries(shortened) as Record<string, unknown>) });
}
