import { readOnce, withoutChunks } from '../http-reader.mjs';

export function pathOf({ videos, cues, limit = videos }) {
  return `/channels/@bench-${videos}x${cues}/transcripts?limit=${limit}`;
}

/** Calls the service once and checks that the response is complete: every entry, every cue and the summary. */
export async function callService(bench, service, { videos, cues, limit = videos }) {
  const path = pathOf({ videos, cues, limit });
  const answer = await readOnce(service.port, path, { Authorization: `Bearer ${bench.key}` });
  const body = withoutChunks(answer.raw);
  const { results, summary } = JSON.parse(body);
  const found = results.reduce((sum, { transcript }) => sum + (transcript.en?.length ?? 0), 0);
  const wanted = Math.min(videos, limit);
  if (answer.status !== 200 || summary.succeeded !== wanted || found !== wanted * cues) {
    throw new Error(`${path}: ${answer.status}, ${JSON.stringify(summary)}, ${found} cues`);
  }
  const { ms, firstEntryMs } = answer;
  return { ms, firstEntryMs, body, cached: summary.cached };
}
