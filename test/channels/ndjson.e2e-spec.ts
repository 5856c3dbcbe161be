import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

interface Line {
  type: string;
  channel?: unknown;
  result?: { videoId: string; ok: boolean; cached: boolean };
  summary?: unknown;
}

function linesOf(text: string): Line[] {
  expect(text.endsWith('\n')).toBe(true);
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

const LINES = { Accept: 'application/x-ndjson' };

describe('an NDJSON response', () => {
  it('has one event per line: the channel, each result, the summary, with the fields of the JSON response', async () => {
    const { key } = await service.organization();
    const path = '/channels/@harbourlight/transcripts';
    const response = await service.get(path, key, LINES);
    expect(response.headers['content-type']).toBe('application/x-ndjson; charset=utf-8');
    expect(response.headers.vary).toMatch(/accept\b(?!-)/i);
    const lines = linesOf(response.text);
    expect(lines.map((line) => line.type)).toEqual(['channel', ...Array<string>(25).fill('result'), 'summary']);
    const json = (await service.get(path, key)).body;
    expect(lines[0]?.channel).toEqual(json.channel);
    const byId = new Map(lines.flatMap(({ result }) => (result ? [[result.videoId, result] as const] : [])));
    for (const entry of json.results as { videoId: string }[]) {
      expect({ ...byId.get(entry.videoId), cached: null }).toEqual({ ...entry, cached: null });
    }
    expect(lines.at(-1)?.summary).toMatchObject({ total: 25, fetched: 17, cached: 0 });
    expect((await service.get('/usage', key)).body.used).toBe(17);
  });

  it('sends a result as soon as it is finished, without waiting for a newer video', async () => {
    const { key } = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext', path: 'fs-230' });
    const response = await fetch(`${service.url}/channels/@fogsignalradio/transcripts?limit=3`, {
      headers: { Authorization: `Bearer ${key}`, ...LINES },
    });
    let text = '';
    for await (const bytes of response.body ?? []) {
      text += Buffer.from(bytes).toString();
      // The two others have arrived while the newest is held.
      if (text.split('"type":"result"').length === 3) hold.release();
    }
    const ids = linesOf(text).flatMap(({ result }) => (result ? [result.videoId.slice(0, 6)] : []));
    expect(ids).toHaveLength(3);
    expect(ids.at(-1)).toBe('fs-230');
  });

  it('is replaced by the JSON error envelope when the call fails', async () => {
    const { key } = await service.organization();
    const answer = await service.get('/channels/@no-such-channel/transcripts', key, LINES);
    expect([answer.status, answer.headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
    expect(answer.body.error.code).toBe('channel_not_found');
  });
});
