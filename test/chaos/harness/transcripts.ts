import type { HttpResponse } from '../../harness/http-request.js';

/** An entry of a response; `end` is `ok` or its error code. */
interface ReadEntry {
  videoId: string;
  end: string;
  cached: boolean;
}

interface ReadSummary {
  total: number;
  succeeded: number;
  failed: number;
  cached: number;
  fetched: number;
}

/** The parsed response of a call for transcripts, from JSON or NDJSON. */
export interface ReadTranscripts {
  entries: readonly ReadEntry[];
  summary: ReadSummary;
}

/** The value at a path in JSON; undefined when there is none. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (from, key) => (typeof from === 'object' && from !== null ? (from as Record<string, unknown>)[key] : undefined),
    value,
  );
}

/** The error code of a response; `ok` when it has none. */
export function codeOf(response: HttpResponse): string {
  const code = at(response.body, 'error', 'code');
  return typeof code === 'string' ? code : response.status === 200 ? 'ok' : `status ${response.status}`;
}

/** Parses a 200 response; undefined when it is incomplete. */
export function readTranscripts({ body, text, whole }: HttpResponse): ReadTranscripts | undefined {
  if (!whole) return undefined;
  if (body !== undefined && at(body, 'type') === undefined) return transcriptsOf(body);
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line): unknown => JSON.parse(line));
  const results = lines.filter((line) => at(line, 'type') === 'result').map((line) => at(line, 'result'));
  return transcriptsOf({ results, summary: at(lines.at(-1), 'summary') });
}

/** The results and the summary of a body; undefined when it has none. */
export function transcriptsOf(body: unknown): ReadTranscripts | undefined {
  const [results, summary] = [at(body, 'results'), at(body, 'summary')];
  if (!Array.isArray(results)) return undefined;
  const number = (name: string): number => {
    const value = at(summary, name);
    return typeof value === 'number' ? value : Number.NaN;
  };
  return {
    entries: results.map((entry) => ({
      videoId: String(at(entry, 'videoId')),
      end: at(entry, 'ok') === true ? 'ok' : String(at(entry, 'error', 'code')),
      cached: at(entry, 'cached') === true,
    })),
    summary: {
      total: number('total'),
      succeeded: number('succeeded'),
      failed: number('failed'),
      cached: number('cached'),
      fetched: number('fetched'),
    },
  };
}

/** The violated identities of a response's summary. */
export function brokenIdentities({ entries, summary }: ReadTranscripts): string[] {
  const { total, succeeded, failed, cached, fetched } = summary;
  const good = entries.filter(({ end }) => end === 'ok');
  const checks: readonly [string, boolean][] = [
    ['total = entries', total === entries.length],
    ['total = succeeded + failed', total === succeeded + failed],
    ['succeeded = cached + fetched', succeeded === cached + fetched],
    ['succeeded = entries without an error', succeeded === good.length],
    ['cached = entries that say so', cached === entries.filter((entry) => entry.cached).length],
    ['no failed entry is cached', entries.every(({ end, cached: free }) => end === 'ok' || !free)],
  ];
  return checks.flatMap(([what, holds]) => (holds ? [] : [`${what} is violated in ${JSON.stringify(summary)}`]));
}
