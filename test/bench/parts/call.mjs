import { once } from 'node:events';
import { get } from 'node:http';

export function pathOf({ videos, cues, limit = videos }) {
  return `/channels/@bench-${videos}x${cues}/transcripts?limit=${limit}`;
}

/** Requests the transcripts of a channel on a connection of its own. */
export async function request(bench, { port }, size) {
  const headers = { Authorization: `Bearer ${bench.key}` };
  const [response] = await once(
    get({ host: '127.0.0.1', port, path: pathOf(size), headers, agent: false }),
    'response',
  );
  return response;
}

/** Calls the service once and checks that the response is complete: every entry, every cue and the summary. */
export async function callService(bench, service, size) {
  const startedAt = performance.now();
  const response = await request(bench, service, size);
  const parts = [];
  let firstEntryMs = null;
  for await (const part of response) {
    parts.push(part);
    if (firstEntryMs === null && part.includes('"videoId"')) firstEntryMs = performance.now() - startedAt;
  }
  const ms = performance.now() - startedAt;
  const body = Buffer.concat(parts);
  const { results, summary } = JSON.parse(body);
  const found = results.reduce((sum, { transcript }) => sum + (transcript.en?.length ?? 0), 0);
  const { videos, cues } = size;
  if (response.statusCode !== 200 || summary.succeeded !== videos || found !== videos * cues) {
    throw new Error(`${pathOf(size)}: ${response.statusCode}, ${JSON.stringify(summary)}, ${found} cues`);
  }
  return { ms, firstEntryMs, body, cached: summary.cached };
}
