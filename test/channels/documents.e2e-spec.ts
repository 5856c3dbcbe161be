import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DocumentDto, FailedDocumentDto } from '../../src/transcripts/formats/documents.js';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { createJob, linesOf } from '../jobs/job-requests.js';
import { SliceSteps } from '../jobs/slice-steps.js';
import { follow } from '../subscriptions/subscription-requests.js';
import type { TestService } from '../harness/service.js';

let steps: SliceSteps;
let service: TestService;

beforeAll(async () => {
  steps = await SliceSteps.start({ environment: { RATE_LIMIT_PER_MINUTE: 0 } });
  ({ service } = steps);
});
afterAll(() => service.close());
beforeEach(() => steps.reset());

type Line = DocumentDto | FailedDocumentDto;
const NDJSON = { Accept: 'application/x-ndjson' };
const documentsIn = (lines: readonly Line[]): DocumentDto[] => lines.flatMap((line) => ('text' in line ? [line] : []));

async function documentsOf(path: string, key: string, headers: Record<string, string> = NDJSON): Promise<Line[]> {
  const { status, text, headers: received } = await service.get(path, key, headers);
  expect([status, received['content-type']]).toEqual([200, 'application/x-ndjson; charset=utf-8']);
  return linesOf(text) as Line[];
}

/** The whole text of each video, of the response without documents. */
async function textsOf(path: string, key: string): Promise<Map<string, string>> {
  const { body } = await service.get(path, key);
  const results = body.results as { ok: boolean; videoId: string; transcript: Record<string, { text: string }[]> }[];
  return new Map(
    results
      .filter(({ ok }) => ok)
      .map(({ videoId, transcript }) => [
        videoId,
        Object.values(transcript)
          .flat()
          .map(({ text }) => text.replaceAll(' ', ''))
          .join(''),
      ]),
  );
}

function textsIn(lines: readonly Line[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { text, metadata } of documentsIn(lines))
    texts.set(metadata.videoId, (texts.get(metadata.videoId) ?? '') + text.replaceAll(' ', ''));
  return texts;
}

describe('as=documents', () => {
  it.each([
    ['a channel', '/channels/@tidewater/transcripts?limit=5', 'Tidewater Kitchen'],
    ['a playlist', `/playlists/${SATURDAY.id}/transcripts?limit=5`, expect.any(String)],
  ])('has the whole texts of %s, with unique IDs and the channel', async (_of, path, name) => {
    const { key } = await service.organization();
    const lines = await documentsOf(`${path}&as=documents`, key);
    const byId = (texts: Map<string, string>) => [...texts].sort(([one], [other]) => (one < other ? -1 : 1));
    expect(byId(textsIn(lines))).toEqual(byId(await textsOf(path, key)));
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
    for (const { metadata } of documentsIn(lines)) expect(metadata).toMatchObject({ channelName: name });
  });

  it('has pieces of the asked length that end at chapters, also without include, and failures as lines', async () => {
    const { key } = await service.organization();
    const body = JSON.stringify({ videos: ['tw-bread___', 'no-such-vid'], chunkSeconds: 600, as: 'documents' });
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...NDJSON };
    const lines = linesOf((await service.request('POST', '/transcripts', headers, body)).text) as Line[];
    expect(documentsIn(lines).map(({ metadata }) => metadata.chapter)).toEqual(['Flour']);
    expect(lines.filter((line) => !('text' in line))).toEqual([
      { id: 'no-such-vid', error: expect.objectContaining({ code: 'video_unavailable' }) },
    ]);
    const chunked = await service.get('/videos/tw-bread___/transcript?chunkSeconds=600', key);
    expect(Object.keys(chunked.body.metadata as object)).not.toContain('chapters');
    const [pieces] = Object.values(chunked.body.transcript as Record<string, { chapter: string }[]>);
    expect(pieces?.map(({ chapter }) => chapter)).toEqual(['Flour']);
  });

  it('is NDJSON for who accepts anything, and 400 for who accepts another type only, before anything is charged', async () => {
    const { key } = await service.organization();
    await documentsOf('/channels/@tidewater/transcripts?limit=1&as=documents', key, { Accept: '*/*' });
    const { used } = (await service.get('/usage', key)).body as { used: number };
    for (const path of ['/channels/@harbourlight/transcripts', '/feed']) {
      const refused = await service.get(`${path}?as=documents`, key, { Accept: 'application/json' });
      expect([refused.status, refused.body.error.details]).toEqual([
        400,
        [{ field: 'as', message: 'as=documents requires the header Accept: application/x-ndjson.' }],
      ]);
    }
    expect((await service.get('/channels/@tidewater/transcripts?as=text', key)).status).toBe(400);
    const without = await service.get('/feed?chunkSeconds=30', key);
    expect(without.body.error.details[0].message).toBe('chunkSeconds requires as=documents.');
    expect((await service.get('/usage', key)).body.used).toBe(used);
  });

  it('has the results of a job, and goes on behind a cursor', async () => {
    const organization = await service.organization();
    const job = await createJob(service, organization.key, { channel: '@tidewater', limit: 3, include: ['chapters'] });
    await steps.finish();
    const path = `/jobs/${job}/results`;
    const lines = await documentsOf(`${path}?as=documents`, organization.key);
    expect(textsIn(lines)).toEqual(await textsOf(path, organization.key));
    expect(documentsIn(lines)[0]?.metadata).toMatchObject({ channelName: 'Tidewater Kitchen' });
    const cursors = lines.flatMap(({ cursor = [] }) => cursor);
    expect(cursors).toHaveLength(3);
    const after = await documentsOf(`${path}?as=documents&after=${cursors[0]}`, organization.key);
    expect(after).toEqual(lines.slice(lines.findIndex(({ cursor }) => cursor === cursors[0]) + 1));
    const shorter = await documentsOf(`${path}?as=documents&chunkSeconds=15&limit=1`, organization.key);
    expect(textsIn(shorter)).toEqual(
      textsIn(lines.slice(0, lines.findIndex(({ cursor }) => cursor === cursors[0]) + 1)),
    );
  });

  it('has the results of a subscription and the feed', async () => {
    const { key } = await service.organization();
    const { id } = await follow(service, key, { channel: '@tidewater', start: 2, chunkSeconds: 600 });
    await steps.finish();
    const own = await documentsOf(`/subscriptions/${id}/results?as=documents`, key);
    expect(textsIn(own)).toEqual(await textsOf(`/subscriptions/${id}/results`, key));
    expect(documentsIn(own).map(({ metadata }) => metadata.chapter)).toContain('Flour');
    expect(await documentsOf('/feed?as=documents', key)).toEqual(own);
    for (const { metadata } of documentsIn(own)) expect(metadata.channelId).toBe('UCtidewater_____________');
  });
});
