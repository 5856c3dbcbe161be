import { type Incoming, REQUEST_KINDS, type RequestKind } from '../incoming-request.js';

export const MATCHABLE_KINDS = [...REQUEST_KINDS, 'browse'] as const;
/** A kind of request; `browse` matches all kinds of browse requests. */
export type MatchableKind = RequestKind | 'browse';

/** Selects requests that match every given property; an empty match selects all. */
export interface RequestMatch {
  kind?: MatchableKind | readonly MatchableKind[];
  /** Matched against the path and query; a string is the source of a regular expression. */
  path?: RegExp | string;
  client?: string;
  clientVersion?: string;
  videoId?: string;
  channelId?: string;
  egress?: string;
}

export function matches(
  match: RequestMatch,
  incoming: Pick<Incoming, 'kind' | 'path' | 'client' | 'clientVersion' | 'videoId' | 'channelId' | 'egress'>,
): boolean {
  const kinds: readonly MatchableKind[] | undefined = typeof match.kind === 'string' ? [match.kind] : match.kind;
  if (kinds && !kinds.some((kind) => incoming.kind === kind || incoming.kind.startsWith(`${kind}-`))) return false;
  if (match.path !== undefined && !new RegExp(match.path).test(incoming.path)) return false;
  if (match.client !== undefined && match.client !== incoming.client) return false;
  if (match.clientVersion !== undefined && match.clientVersion !== incoming.clientVersion) return false;
  if (match.egress !== undefined && match.egress !== incoming.egress) return false;
  if (match.videoId !== undefined && match.videoId !== incoming.videoId) return false;
  return match.channelId === undefined || match.channelId === incoming.channelId;
}
