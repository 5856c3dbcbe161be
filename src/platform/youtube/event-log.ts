import { Logger } from '@nestjs/common';

const logger = new Logger('YoutubePlatform');

/** The adapter's log events. */
type YoutubeEvent =
  | 'youtube_unknown_playability'
  | 'youtube_unreadable'
  | 'youtube_block_opened'
  | 'youtube_block_closed'
  | 'youtube_pace_learned'
  | 'youtube_control_asked'
  | 'youtube_exit_rested'
  | 'youtube_exit_back'
  | 'youtube_unreached'
  | 'youtube_video_refused'
  | 'youtube_client_rested'
  | 'youtube_client_back'
  | 'youtube_client_retired'
  | 'youtube_client_reinstated'
  | 'youtube_po_token_provider_down'
  | 'youtube_po_token_provider_back'
  | 'youtube_fields_not_honoured'
  | 'youtube_list_incomplete'
  | 'youtube_side_list_failed'
  | 'youtube_internal_error';

/** Longer texts are truncated: they may come from the platform. */
const TEXT_LENGTH_MAX = 200;
/** The stack of a fault begins with its message. */
const STACK_LENGTH_MAX = 2_000;

/** Logs one event with its fields. */
export function report(
  level: 'log' | 'warn' | 'error',
  event: YoutubeEvent,
  fields: Readonly<Record<string, unknown>>,
): void {
  const shortened = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.slice(0, name === 'stack' ? STACK_LENGTH_MAX : TEXT_LENGTH_MAX) : value,
  ]);
  logger[level]({ event, ...(Object.fromEntries(shortened) as Record<string, unknown>) });
}
