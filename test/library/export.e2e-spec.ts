import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ChannelTranscriptsClient } from '@channel-transcripts/client';
import type { DocumentDto } from '../../src/transcripts/formats/documents.js';
import { startService, type TestService } from '../harness/service.js';
import { createJob, waitForJob } from '../jobs/job-requests.js';
import { libraryVideos } from './library-requests.js';

let service: TestService;
let key = '';

beforeAll(async () => {
  service = await startService();
  ({ key } = await service.organization());
  for (const body of [
    { channel: '@tidewater' },
    { videos: ['hl-keeper__'], languages: ['en'] },
    { videos: ['hl-keeper__'], languages: ['de'] },
  ])
    await waitForJob(
      service,
      key,
      await createJob(service, key, { ...body, keep: true, labels: { from: Object.keys(body)[0] } }),
    );
});
afterAll(() => service.close());

async function documents(query = ''): Promise<(DocumentDto & { cursor?: string })[]> {
  const headers = { Authorization: `Bearer ${key}`, Accept: 'application/x-ndjson' };
  const { status, text, headers: sent } = await service.request('GET', `/library/videos?as=documents${query}`, headers);
  expect({ status, type: sent['content-type'] }).toEqual({ status: 200, type: 'application/x-ndjson; charset=utf-8' });
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as DocumentDto);
}

const videosOf = (all: readonly DocumentDto[]): string[] => [...new Set(all.map(({ metadata }) => metadata.videoId))];

describe('the library as documents', () => {
  it('has all texts of all videos, in the order of the list, each piece once', async () => {
    const all = await documents();
    const { videos } = await libraryVideos(service, key);
    expect(videosOf(all)).toEqual(videos.map(({ videoId }) => videoId));
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect(
      new Set(all.filter(({ id }) => id.startsWith('hl-keeper__')).map(({ metadata }) => metadata.language)),
    ).toEqual(new Set(['en', 'de']));
    for (const { metadata } of all) expect(metadata.channelId).toMatch(/^UC/);
  });

  it('is the same as the documents of a call, and the pieces have the length that was requested', async () => {
    const response = await service.request('GET', '/channels/@tidewater/transcripts?as=documents', {
      ...{ Authorization: `Bearer ${key}`, Accept: 'application/x-ndjson' },
    });
    const called = response.text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as DocumentDto);
    const texts = called.filter((one) => !('error' in one)).map(({ id, text }) => ({ id, text }));
    const exported = (await documents('&channel=@tidewater')).map(({ id, text }) => ({ id, text }));
    expect(exported).toHaveLength(texts.length);
    expect(exported).toEqual(expect.arrayContaining(texts));
    expect((await documents('&chunkSeconds=15')).length).toBeGreaterThan((await documents()).length);
  });

  it('is limited as the list is, also by the language of one of several texts', async () => {
    for (const query of [
      '&language=de',
      '&label=from:channel',
      '&channel=@harbourlight',
      '&publishedAfter=2999-01-01',
      '&limit=2',
    ])
      expect(videosOf(await documents(query))).toEqual(
        (await libraryVideos(service, key, query.replace('&', '?'))).videos.map(({ videoId }) => videoId),
      );
    expect(new Set((await documents('&language=EN')).map(({ metadata }) => metadata.language))).toEqual(
      new Set(['en']),
    );
    expect(videosOf(await documents('&language=en'))).toContain('hl-keeper__');
  });

  it('goes on behind a cursor of its lines', async () => {
    const all = await documents();
    const at = all.findIndex(({ cursor }) => cursor !== undefined);
    expect(await documents(`&after=${all[at]?.cursor}`)).toEqual(all.slice(at + 1));
  });

  it('is refused as JSON before the first byte', async () => {
    for (const [query, accept] of [
      ['as=documents', 'application/json'],
      ['as=documents&after=x', 'application/x-ndjson'],
      ['as=texts', 'application/x-ndjson'],
      ['chunkSeconds=60', 'application/json'],
    ] as const) {
      const headers = { Authorization: `Bearer ${key}`, Accept: accept };
      const { status, body } = await service.request('GET', `/library/videos?${query}`, headers);
      expect({ status, body }).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } });
    }
  });

  it('is read by the client', async () => {
    const client = new ChannelTranscriptsClient({ baseUrl: service.url, apiKey: key });
    const read = [];
    for await (const one of client.documents({ library: { label: 'from:channel' } }, { chunkSeconds: 60 }))
      read.push(one);
    expect(read).toEqual(await documents('&label=from:channel'));
  });
});
