import { parseChannelReference } from '../domain/references/channel-reference.js';
import { labelOf } from './dto/labels.js';

/** Of a list or the feed: only what has a label (`name:value`), or follows a channel. */
export interface ListFilter {
  label?: string | undefined;
  channel?: string | undefined;
}

/**
 * Whether a job has the label, and follows the channel, that are the parameters, as `wantedValues` has them; null for any. A channel is
 * its ID, its handle, or the text by which it was requested. The handle is found in the text, because PostgreSQL reads no JSON whose
 * name of a channel has U+0000 or half of a surrogate pair.
 */
export function isWanted(label: string, channel: string): string {
  return `(${label}::jsonb IS NULL OR job.labels @> ${label}::jsonb) AND (${channel}::text[] IS NULL
    OR job.channel_id = ANY (${channel}) OR lower(substring(job.channel FROM '"handle":"([^"]*)"')) = ANY (${channel})
    OR lower(job.request::json ->> 'channel') = ANY (${channel}))`;
}

export function wantedValues({ label, channel }: ListFilter): [label: string | null, channel: string[] | null] {
  const reference = channel === undefined ? undefined : parseChannelReference(channel);
  const names = [
    ...(channel === undefined ? [] : [channel.toLowerCase()]),
    ...(reference?.kind === 'id' ? [reference.id] : []),
    ...(reference?.kind === 'handle' ? [`@${reference.handle.toLowerCase().replace(/^@/, '')}`] : []),
  ];
  return [label === undefined ? null : JSON.stringify(labelOf(label)), channel === undefined ? null : names];
}
