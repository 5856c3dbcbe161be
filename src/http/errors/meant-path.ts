import { meantName } from '../../domain/unknown-parameter.js';

/** A path with more segments means none by mistake. A URL that is sent raw as an ID has about six. */
const SEGMENTS_MAX = 12;
const SEGMENT_LENGTH_MAX = 40;

/**
 * The path that an unknown one means: misspelled, in another letter case, behind a prefix such as `/v1`, or with a slash at the end.
 *
 * @param paths as in the OpenAPI document, such as `/jobs/{id}`
 */
export function meantPath(path: string, paths: readonly string[]): string | undefined {
  const sent = path.split('/').filter(Boolean);
  if (sent.length > SEGMENTS_MAX) return undefined;
  const segments = sent.map((segment) => segment.slice(0, SEGMENT_LENGTH_MAX));
  const [best] = paths
    .flatMap((one) => scoreOf(segments, one.split('/').slice(1)) ?? [])
    .sort((one, other) => other.names - one.names || one.first - other.first || one.difference - other.difference);
  return best && `/${best.parts.join('/')}`;
}

/** How well segments fit a path, whose names they must have in this order. */
function scoreOf(segments: readonly string[], parts: readonly string[]) {
  const names = parts.filter((part) => !part.startsWith('{'));
  let [first, next] = [Infinity, 0];
  for (const name of names) {
    const found = segments.findIndex((one, index) => index >= next && (one === name || meantName(one, [name])));
    if (found < 0) return undefined;
    first = Math.min(first, found);
    next = found + 1;
  }
  return { parts, names: names.length, first, difference: Math.abs(segments.length - first - parts.length) };
}
