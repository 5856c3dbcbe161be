import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import MarkdownIt from 'markdown-it';
import { startService, type TestService } from '../harness/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

const MARKDOWN = { Accept: 'text/markdown' };
const PATH = '/channels/@harbourlight/transcripts';

interface Entry {
  videoId: string;
  ok: boolean;
  metadata: { title: string };
  error?: { code: string };
}

/** The content of each heading of a level, without escapes. */
function headings(text: string, tag: 'h1' | 'h2'): string[] {
  const tokens = new MarkdownIt({ html: true }).parse(text, {});
  return tokens.flatMap(({ type, tag: opened }, index) => {
    if (type !== 'heading_open' || opened !== tag) return [];
    return [(tokens[index + 1]?.children ?? []).map(({ content }) => content).join('')];
  });
}

describe('a Markdown response', () => {
  it('is one document: the channel, a section for each transcript newest first, a line for each failure, the counts', async () => {
    const { key } = await service.organization();
    const response = await service.get(PATH, key, MARKDOWN);
    expect([response.status, response.headers['content-type']]).toEqual([200, 'text/markdown; charset=utf-8']);
    expect(response.headers.vary).toMatch(/accept-encoding, accept\b(?!-)/i);
    const { channel, results, summary } = (await service.get(PATH, key)).body;
    const entries = results as Entry[];
    expect(headings(response.text, 'h1')).toEqual([channel.name]);
    expect(headings(response.text, 'h2')).toEqual(entries.filter(({ ok }) => ok).map(({ metadata }) => metadata.title));
    const failed = entries.filter(({ ok }) => !ok);
    const lines = response.text.split('\n').filter((line) => line.startsWith('- '));
    expect(lines.map((line) => /\(https:\/\/youtu\.be\/(.{11})\).*\(`(\w+)`\)$/.exec(line)?.slice(1))).toEqual(
      failed.map(({ videoId, error }) => [videoId, error?.code]),
    );
    expect(response.text).toContain('\n\n[0:00](https://youtu.be/hl-dinghy__?t=0) Good morning from the slip');
    expect(
      response.text.endsWith(
        `\n---\n\n25 videos: ${summary.succeeded} with a transcript, ${summary.failed} without.\n`,
      ),
    ).toBe(true);
    expect((await service.get('/usage', key)).body.used).toBe(summary.succeeded);
  });

  it('is the same document compressed', async () => {
    const { key } = await service.organization();
    const plain = await service.get(PATH, key, MARKDOWN);
    const response = await fetch(`${service.url}${PATH}`, {
      headers: { ...MARKDOWN, Authorization: `Bearer ${key}`, 'Accept-Encoding': 'gzip' },
    });
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(await response.text()).toBe(plain.text);
  });

  it('has the newest section before an older video is fetched', async () => {
    const { key } = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext', path: 'fs-229' });
    const response = await fetch(`${service.url}/channels/@fogsignalradio/transcripts?limit=3`, {
      headers: { ...MARKDOWN, Authorization: `Bearer ${key}`, 'Accept-Encoding': 'identity' },
    });
    await hold.arrived;
    let text = '';
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      if (/youtu\.be\/fs-230/.test(text)) hold.release();
    }
    expect(headings(text, 'h2')).toHaveLength(3);
  });

  it.each([
    ['text/markdown;q=0.1, application/json', 'application/json'],
    ['text/markdown, application/x-ndjson;q=0.9', 'text/markdown'],
    ['text/markdown; charset=utf-8', 'text/markdown'],
    ['application/x-ndjson;charset=UTF-8, application/json;q=0.5', 'application/x-ndjson'],
    ['text/*', 'text/markdown'],
    ['*/*', 'application/json'],
    ['text/html', 'application/json'],
  ])('is negotiated: Accept: %s gets %s', async (accept, type) => {
    const { key } = await service.organization();
    const answer = await service.get('/channels/@emptyslip/transcripts', key, { Accept: accept });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, `${type}; charset=utf-8`]);
  });
});
