import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';

let service: TestService;
let key: string;

beforeAll(async () => {
  service = await startService({
    environment: { UPSTREAM_RETRIES: 0, UPLOADS_TTL_SECONDS: 60, CHANNEL_TTL_SECONDS: 60 },
  });
  ({ key } = await service.organization());
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());
afterEach(() => void jest.restoreAllMocks());

const wallClock = Date.now.bind(Date);
const MINUTE = 60;
const DAY = 86_400;

/** Moves the clock of the process ahead of the true one. */
function pass(seconds: number): void {
  jest.spyOn(Date, 'now').mockImplementation(() => wallClock() + seconds * 1_000);
}

function refuseLists(kind: '500' | 'captcha' = '500'): void {
  service.fakeYoutube.setFaults({ kind, match: { kind: ['resolve', 'browse'] } });
}

const read = (path: string, accept = 'application/json'): Promise<ServiceResponse> =>
  service.get(path, key, { Accept: accept });

describe('a list that the platform refuses', () => {
  it.each([
    ['the transcripts of a channel', '/channels/@3-videos-no-41/transcripts', 'channel'],
    ['the uploads of a channel', '/channels/@3-videos-no-42/uploads', 'channel'],
    ['the transcripts of a playlist', `/playlists/${SATURDAY.id}/transcripts`, 'playlist'],
  ])('is the one that was read last: %s', async (_, path, header) => {
    const beforeMs = Date.now();
    const first = await read(path);
    const afterMs = Date.now();
    expect([first.status, first.body.listedAt, first.headers['warning']]).toEqual([200, undefined, undefined]);
    refuseLists();
    expect((await read(path)).body.listedAt).toBeUndefined();
    pass(2 * MINUTE);
    const refused = await read(path);
    expect(refused.status).toBe(200);
    expect(refused.headers['warning']).toBe('110 - "Response is Stale"');
    expect(Object.keys(refused.body as object).slice(0, 2)).toEqual([header, 'listedAt']);
    const { listedAt } = refused.body as { listedAt: string };
    expect(Date.parse(listedAt)).toBeGreaterThanOrEqual(beforeMs);
    expect(Date.parse(listedAt)).toBeLessThanOrEqual(afterMs);
    expect(refused.body[header]).toEqual(first.body[header]);
    const idsOf = ({ body }: ServiceResponse): unknown =>
      (body.results ?? body.uploads).map(({ videoId }: { videoId: string }) => videoId);
    expect(idsOf(refused)).toEqual(idsOf(first));
    if (refused.body.summary)
      expect(refused.body.summary).toMatchObject({ fetched: 0, failed: first.body.summary.failed });

    service.fakeYoutube.reset();
    const again = await read(path);
    expect([again.status, again.body.listedAt, again.headers['warning']]).toEqual([200, undefined, undefined]);
  });

  it('is dated in NDJSON and in Markdown, too', async () => {
    const path = '/channels/@3-videos-no-43/transcripts';
    await read(path);
    refuseLists();
    pass(2 * MINUTE);
    const [line = ''] = (await read(path, 'application/x-ndjson')).text.split('\n');
    const { type, listedAt } = JSON.parse(line) as { type: string; listedAt: string };
    expect([type, Date.parse(listedAt) > 0]).toEqual(['channel', true]);
    const markdown = await read(path, 'text/markdown');
    expect(markdown.text).toContain(`as listed at ${listedAt}`);
    expect(markdown.headers['warning']).toBe('110 - "Response is Stale"');
  });

  it('is 502 when less was read of it than the call asks for, instead of a list that was cut off', async () => {
    const path = '/channels/@200-videos-no-44/uploads';
    const first = await read(`${path}?limit=100`);
    expect(first.body.uploads).toHaveLength(100);
    refuseLists();
    expect((await read(`${path}?limit=100&kinds=live`)).status).toBe(502);
    pass(2 * MINUTE);
    expect((await read(`${path}?limit=100`)).body.listedAt).toEqual(expect.any(String));
  });

  it('is 502 when the last one is a day old, or there is none', async () => {
    const path = '/channels/@3-videos-no-45/uploads';
    await read(path);
    refuseLists();
    pass(DAY - MINUTE);
    expect((await read(path)).status).toBe(200);
    pass(DAY + MINUTE);
    expect((await read(path)).status).toBe(502);
    expect((await read('/channels/@3-videos-no-46/uploads')).status).toBe(502);
  });

  it('is not that of a channel that is known to be deleted', async () => {
    const path = '/channels/@tidewater/uploads';
    const { body } = await read(path);
    pass(2 * MINUTE);
    service.fakeYoutube.changeChannel({ channel: '@tidewater', terminated: true });
    expect((await read(`/channels/${body.channel.id as string}/uploads`)).status).toBe(404);
    refuseLists();
    pass(4 * MINUTE);
    expect((await read(path)).status).toBe(502);
  });

  it('is served while the egress pauses', async () => {
    const path = '/channels/@3-videos-no-48/transcripts';
    await read(path);
    refuseLists('captcha');
    pass(2 * MINUTE);
    await read(path);
    const { status, body } = await read(path);
    expect([status, body.summary?.cached, typeof body.listedAt]).toEqual([200, 3, 'string']);
  });
});
