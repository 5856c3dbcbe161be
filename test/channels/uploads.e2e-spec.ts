import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type ServiceResponse, type TestService } from '../service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 5 } });
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

const idsOf = ({ body }: ServiceResponse): string[] =>
  (body.uploads ?? body.results).map(({ videoId }: { videoId: string }) => videoId) as string[];

const TIDEWATER = ['tw-chowder_', 'tw-bread___', 'tw-mackerel', 'tw-pickles_', 'tw-tea_____'];

describe("a channel's uploads", () => {
  it('are listed with the metadata of the list, on every plan, without reading a video and without quota', async () => {
    const { key } = await service.organization({ plan: 'free', monthlyLimit: 0 });
    const response = await service.get('/channels/@tidewater/uploads?limit=3', key);
    expect(response.status).toBe(200);
    expect(Object.keys(response.body as object)).toEqual(['channel', 'uploads']);
    expect(response.body.channel).toMatchObject({ handle: '@tidewater', name: 'Tidewater Kitchen' });
    expect(idsOf(response)).toEqual(TIDEWATER.slice(0, 3));
    expect(Object.keys(response.body.uploads[0] as object)).toEqual(['videoId', 'metadata']);
    expect(response.body.uploads[0].metadata).toMatchObject({ title: 'Mussel chowder for eight', captionTracks: null });
    expect(service.fakeYoutube.requests.count({ kind: ['player', 'reel', 'timedtext'] })).toBe(0);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
  });

  it('are listed for a raw URL', async () => {
    const { key } = await service.organization();
    const response = await service.get('/channels/https://www.youtube.com/@tidewater/uploads', key);
    expect(idsOf(response)).toEqual(TIDEWATER);
  });

  it('are empty for a channel that has none, and 404 for one that does not exist', async () => {
    const { key } = await service.organization();
    expect((await service.get('/channels/@emptyslip/uploads', key)).body.uploads).toEqual([]);
    const unknown = await service.get('/channels/@no-such-channel/uploads', key);
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'channel_not_found']);
  });

  it('have a rate limit of their own', async () => {
    const { key } = await service.organization();
    const listed = () => service.get('/channels/@tidewater/uploads', key);
    for (let call = 0; call < 5; call += 1) expect((await listed()).status).toBe(200);
    const refused = await listed();
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    const other = await service.get('/usage', key);
    expect([other.status, other.headers['x-ratelimit-remaining']]).toEqual([200, '4']);
  });

  it.each([
    ['limit=0', 'limit'],
    ['languages=en', 'languages'],
    ['since=short', 'since'],
  ])('with %s are 400, naming the field', async (query, field) => {
    const { key } = await service.organization();
    const response = await service.get(`/channels/@tidewater/uploads?${query}`, key);
    expect([response.status, response.body.error.details[0].field]).toEqual([400, field]);
  });
});

describe('since', () => {
  it.each([
    ['tw-mackerel', 2],
    ['tw-chowder_', 0],
    ['tw-tea_____', 4],
    ['aaaaaaaaaaa', 5],
  ])('%s leaves the %i uploads above it', async (since, count) => {
    const { key } = await service.organization();
    for (const path of ['uploads', 'transcripts']) {
      const response = await service.get(`/channels/@tidewater/${path}?since=${since}`, key);
      expect(idsOf(response)).toEqual(TIDEWATER.slice(0, count));
    }
  });

  it('costs only what is listed', async () => {
    const { key } = await service.organization({ monthlyLimit: 1 });
    const path = '/channels/@bench-3x23/transcripts';
    const uploads = idsOf(await service.get('/channels/@bench-3x23/uploads', key));
    const response = await service.get(`${path}?since=${uploads[1]}`, key);
    expect([response.status, response.body.summary.fetched]).toEqual([200, 1]);
  });
});
