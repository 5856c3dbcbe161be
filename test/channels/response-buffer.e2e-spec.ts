import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { generatedChannelByHandle } from '../fake-youtube/catalogue/generated-channels.js';
import type { Hold } from '../fake-youtube/faults/held-requests.js';
import { ResponseMemory } from '../../src/transcripts/delivery/response-memory.js';
import { startService, type ServiceResponse, type TestOrganization, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

const MEGABYTE = 1024 * 1024;
const BUFFER_MEGABYTES = 1;
/** One call may use a sixteenth of it. */
const CALL_BYTES_MAX = 64 * 1024;

let service: TestService;
let memory: ResponseMemory;
let organization: TestOrganization;

beforeAll(async () => {
  service = await startService({ environment: { RESPONSE_BUFFER_MAX_MEGABYTES: BUFFER_MEGABYTES } });
  memory = service.app.get(ResponseMemory);
});
afterAll(() => service.close());
beforeEach(async () => {
  organization = await service.organization();
});
afterEach(async () => {
  jest.restoreAllMocks();
  service.fakeYoutube.reset();
  await until(() => memory.heldBytes === 0);
});

const pathTo = (handle: string): string => `/channels/${handle}/transcripts?limit=100`;

/** Requests a channel whose newest video does not arrive, so that all others wait for it. */
function requestBehindNewest(handle: string): { hold: Hold; running: Promise<ServiceResponse> } {
  const [newest] = generatedChannelByHandle(handle)?.uploads() ?? [];
  const hold = service.fakeYoutube.hold({ kind: 'timedtext', videoId: newest?.id ?? '' });
  return { hold, running: service.get(pathTo(handle), organization.key) };
}

const usage = async (): Promise<unknown> => {
  const { used, reserved } = (await service.get('/usage', organization.key)).body;
  return { used, reserved };
};

describe('texts buffered for a client', () => {
  it('stop the fetching at the limit: missing transcripts are not charged, and a later call can fetch them', async () => {
    const most = watchMost();
    const { hold, running } = requestBehindNewest('@bench-100x100');
    // Each waiting text is counted when it has arrived, until the call may not fetch another one.
    await until(() => memory.heldBytes >= CALL_BYTES_MAX);
    hold.release();
    const { body } = await running;
    const { fetched, failed } = body.summary;
    expect(body.summary).toEqual({ total: 100, succeeded: fetched, failed, cached: 0, fetched });
    expect([fetched > 10, failed > 10]).toEqual([true, true]);
    expect(body.results.find(({ ok }: { ok: boolean }) => !ok)).toMatchObject({
      error: {
        code: 'upstream_failure',
        message: expect.stringContaining('The response buffer of this call is full'),
        retryable: true,
      },
    });
    // The fetches that were running when the limit was reached complete: up to two for each of the 16 slots, of 5 KB each.
    expect(most()).toBeLessThan(4 * CALL_BYTES_MAX);
    expect(await usage()).toEqual({ used: fetched, reserved: 0 });
    service.fakeYoutube.reset();
    await until(
      async () => (await service.get(pathTo('@bench-100x100'), organization.key)).body.summary.failed === 0,
      20_000,
    );
    expect(await usage()).toEqual({ used: 100, reserved: 0 });
  });

  it('cause new calls to be refused without charge while they fill the whole budget', async () => {
    const others = Buffer.alloc(BUFFER_MEGABYTES * MEGABYTE);
    memory.add('others', others);
    const refused = await service.get(pathTo('@2-videos-no-2'), organization.key);
    memory.release('others', others);
    expect([refused.status, refused.body.error, refused.headers['retry-after']]).toMatchObject([
      503,
      { code: 'service_unavailable', retryable: true },
      expect.stringMatching(/^\d+$/),
    ]);
    expect(await usage()).toEqual({ used: 0, reserved: 0 });
    expect((await service.get(pathTo('@2-videos-no-2'), organization.key)).body.summary).toMatchObject({ fetched: 2 });
  });

  it('cause the calls of an organization that holds a quarter to be refused, and nobody else', async () => {
    const open = Buffer.alloc((BUFFER_MEGABYTES * MEGABYTE) / 4);
    memory.add(organization.id, open);
    const other = await service.organization();
    const [refused, served] = [
      await service.get(pathTo('@2-videos-no-2'), organization.key),
      await service.get(pathTo('@2-videos-no-2'), other.key),
    ];
    memory.release(organization.id, open);
    expect([refused.status, refused.body.error, refused.headers['retry-after']]).toMatchObject([
      503,
      { code: 'service_unavailable', message: expect.stringContaining('Read them to the end'), retryable: true },
      expect.stringMatching(/^\d+$/),
    ]);
    expect(served.body.summary).toMatchObject({ succeeded: 2 });
    expect(await usage()).toEqual({ used: 0, reserved: 0 });
  });

  it('do not stop a running call that buffers little, even when others use the whole budget', async () => {
    const others = Buffer.alloc(BUFFER_MEGABYTES * MEGABYTE);
    const { hold, running } = requestBehindNewest('@bench-3x100');
    await hold.arrived;
    memory.add('others', others);
    hold.release();
    const { summary } = (await running).body;
    memory.release('others', others);
    expect(summary).toMatchObject({ total: 3, fetched: 3 });
  });
});

describe('captions of more than 4 MB', () => {
  it('are not read: the video fails and costs nothing', async () => {
    const { body } = await service.get(pathTo('@noise-1x12500'), organization.key);
    expect(body.results[0].error).toMatchObject({ code: 'upstream_failure', retryable: true });
    expect(await usage()).toEqual({ used: 0, reserved: 0 });
  });
});

/** The maximum since then. */
function watchMost(): () => number {
  let most = 0;
  const add = memory.add.bind(memory);
  jest.spyOn(memory, 'add').mockImplementation((organizationId, text) => {
    add(organizationId, text);
    most = Math.max(most, memory.heldBytes);
  });
  return () => most;
}
