import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { request as httpRequest, type Server } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { JobDto as Job } from '../../src/jobs/dto/job.dto.js';
import { ResponseMemory } from '../../src/transcripts/delivery/response-memory.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { createJob, linesOf, onJob, waitForJob } from './job-requests.js';

let service: TestService;

beforeAll(async () => {
  service = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 0, JOB_SWEEP_SECONDS: 1 } });
});
afterAll(() => service.close());
afterEach(() => service.fakeYoutube.reset());

const NDJSON = { Accept: 'application/x-ndjson' };
const idsOf = (entries: { videoId: string }[]): string[] => entries.map(({ videoId }) => videoId);
/** The cursor after so many entries. */
const at = (count: number): string => expect.stringMatching(new RegExp(`^${count}\\.[\\w-]{8}$`)) as unknown as string;
/** What the entries of a job and those of a call have in common. */
const common = (entries: object[]): object[] =>
  entries.map((entry) => ({ ...entry, cached: undefined, position: undefined }));

/** The IDs of a channel's uploads, newest first. */
async function uploadsOf(channel: string, key: string): Promise<string[]> {
  return idsOf(
    (await service.get(`/channels/${channel}/uploads?limit=100`, key)).body.uploads as { videoId: string }[],
  );
}

/** The bytes of a body as they are sent. */
function rawBody(path: string, key: string, headers: Record<string, string>): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      `${service.url}${path}`,
      { headers: { ...headers, Authorization: `Bearer ${key}` }, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('end', () => resolve(Buffer.concat(chunks)));
        response.once('error', reject);
      },
    );
    request.once('error', reject);
    request.end();
  });
}

describe('the results of a completed job', () => {
  const CHANNEL = '@mixed-40x5';
  let key: string;
  let id: string;
  let job: Job;

  beforeAll(async () => {
    ({ key } = await service.organization());
    id = await createJob(service, key, { channel: CHANNEL });
    job = await waitForJob(service, key, id);
  });

  it('are the entries of a call, in the same order, and were charged once each', async () => {
    const { body: page } = await service.get(`/jobs/${id}/results?limit=100`, key);
    expect(Object.keys(page as object)).toEqual(['results', 'next', 'job']);
    expect((await service.get('/usage', key)).body).toMatchObject({ used: job.summary.fetched, reserved: 0 });
    const { body: call } = await service.get(`/channels/${CHANNEL}/transcripts?limit=100`, key);
    expect(common(page.results as object[])).toEqual(common(call.results as object[]));
    expect(page.results.map(({ position }: { position: number }) => position)).toEqual(
      page.results.map((_: unknown, index: number) => index + 1),
    );
    expect(Object.keys(page.results[0] as object)[0]).toBe('position');
    expect(page.results.map(({ cached }: { cached: boolean }) => cached)).not.toContain(true);
    const { succeeded, failed, cached, fetched } = job.summary;
    expect([succeeded, failed]).toEqual([call.summary.succeeded, call.summary.failed]);
    expect([cached, fetched]).toEqual([0, succeeded]);
    expect(failed).toBeGreaterThan(0);
  });

  it('are the same in every form and encoding', async () => {
    const path = `/jobs/${id}/results?limit=100`;
    const page = await service.get(path, key, { 'Accept-Encoding': 'identity' });
    expect(page.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      vary: expect.stringMatching(/accept-encoding.*accept\b/i),
      'cache-control': 'private, no-store',
    });
    const zipped = gunzipSync(await rawBody(path, key, { 'Accept-Encoding': 'gzip' })).toString();
    expect(JSON.parse(zipped).results).toEqual(page.body.results);
    for (const [accept, encoding] of [
      ['application/x-ndjson', 'gzip'],
      ['application/x-ndjson; charset=utf-8', 'identity'],
    ] as const) {
      const raw = await rawBody(path, key, { Accept: accept, 'Accept-Encoding': encoding });
      const lines = linesOf((encoding === 'gzip' ? gunzipSync(raw) : raw).toString());
      expect(lines.slice(0, -1).map(({ type }) => type as string)).toEqual(page.body.results.map(() => 'result'));
      expect(lines.slice(0, -1).map(({ result }) => result as object)).toEqual(page.body.results);
      const last = lines.at(-1);
      expect(Object.keys(last as object)).toEqual(['type', 'summary', 'next', 'job']);
      expect(last).toMatchObject({ type: 'summary', summary: last.job.summary, job: { id } });
    }
  });
});

describe('the pages of a completed job', () => {
  let key: string;
  let id: string;
  let uploads: string[];

  beforeAll(async () => {
    ({ key } = await service.organization());
    id = await createJob(service, key, { channel: '@45-videos-no-2' });
    await waitForJob(service, key, id);
    uploads = await uploadsOf('@45-videos-no-2', key);
  });

  it.each([1, 7, 44, 45, 46])('of %d entries have every entry once, and no next at the end', async (limit) => {
    const seen: string[] = [];
    let after: string | null = '0';
    let pages = 0;
    while (after !== null) {
      const { body }: { body: any } = await service.get(`/jobs/${id}/results?limit=${limit}&after=${after}`, key);
      seen.push(...idsOf(body.results as { videoId: string }[]));
      after = body.next;
      pages += 1;
    }
    expect(seen).toEqual(uploads);
    expect(pages).toBe(Math.ceil(45 / limit));
  });

  it('have 25 entries by default and at most 100; NDJSON has all of them, or as many as requested', async () => {
    const page = (await service.get(`/jobs/${id}/results`, key)).body;
    expect([page.results.length, page.next]).toEqual([25, at(25)]);
    expect((await service.get(`/jobs/${id}/results?limit=5000`, key)).body.results).toHaveLength(45);
    expect(linesOf((await service.get(`/jobs/${id}/results`, key, NDJSON)).text)).toHaveLength(46);
    const lines = linesOf((await service.get(`/jobs/${id}/results?limit=3&after=20`, key, NDJSON)).text);
    expect(lines.map(({ position }) => position as number)).toEqual([21, 22, 23, undefined]);
    expect(lines.at(-1)).toMatchObject({ next: at(23) });
  });

  it.each([
    ['limit=0', 'limit'],
    ['after=-1', 'after'],
    ['after=9999999999999999', 'after'],
    ['after=1.short', 'after'],
    ['offset=1', 'offset'],
  ])('with %s are refused', async (query, field) => {
    const response = await service.get(`/jobs/${id}/results?${query}`, key);
    expect([response.status, response.body.error.code]).toEqual([400, 'invalid_request']);
    expect(response.body.error.details.map((one: { field: string }) => one.field)).toContain(field);
  });
});

describe('the results of a running job', () => {
  it('are read so far, and a reader who goes on from next receives every entry once', async () => {
    const { key } = await service.organization();
    const uploads = await uploadsOf('@60-videos-no-3', key);
    const held = uploads[37] ?? '';
    const hold = service.fakeYoutube.hold({ kind: 'player', videoId: held });
    const id = await createJob(service, key, { channel: '@60-videos-no-3' });
    await hold.arrived;
    await waitForJob(service, key, id, ({ summary }) => summary.succeeded >= 25);
    const lines = linesOf((await service.get(`/jobs/${id}/results`, key, NDJSON)).text);
    const first = lines.slice(0, -1).map(({ result }) => result.videoId as string);
    expect(first).toEqual(uploads.slice(0, 25));
    const { next, job } = lines.at(-1);
    expect([next, job.state, job.summary.total]).toEqual([at(25), 'running', 60]);
    const { body: empty } = await service.get(`/jobs/${id}/results?after=${next}`, key);
    expect([empty.results, empty.next, empty.job.checkAgainSeconds > 0]).toEqual([[], next, true]);
    hold.release();
    await waitForJob(service, key, id);
    const rest = linesOf((await service.get(`/jobs/${id}/results?after=${next}`, key, NDJSON)).text);
    expect([...first, ...rest.slice(0, -1).map(({ result }) => result.videoId as string)]).toEqual(uploads);
    expect(rest.at(-1)).toMatchObject({ next: null, job: { state: 'completed' } });
  });
});

describe('the results of a job with videos that stay pending', () => {
  it('have all other entries at once, in every form, and later those videos after them', async () => {
    const { key } = await service.organization();
    // An announced stream and a live one, which the job tries again later.
    const id = await createJob(service, key, { channel: '@harbourlight', limit: 6 });
    const job = await waitForJob(service, key, id, ({ summary: { total, pending } }) => total === 6 && pending === 2);
    expect([job.state, Number(job.checkAgainSeconds) > 60]).toEqual(['running', true]);
    const lines = linesOf((await service.get(`/jobs/${id}/results`, key, NDJSON)).text);
    expect(lines.slice(0, -1).map(({ cursor, position }) => `${parseInt(cursor as string, 10)}: ${position}`)).toEqual([
      '1: 3',
      '2: 4',
      '3: 5',
      '4: 6',
    ]);
    expect(lines.at(-1)).toMatchObject({ next: at(4), job: { state: 'running' } });
    const { body } = await service.get(`/jobs/${id}/results?limit=3`, key);
    expect([body.results.map(({ position }: { position: number }) => position), body.next]).toEqual([[3, 4, 5], at(3)]);
    // From there a reader would miss the next two.
    for (const cursor of ['99', '4.AAAAAAAA']) {
      const unknown = await service.get(`/jobs/${id}/results?after=${cursor}`, key);
      expect([unknown.status, unknown.body.error]).toMatchObject([410, { code: 'cursor_unknown', oldest: '0' }]);
    }
    // Their last try is due.
    await service.query(`
      UPDATE job_videos SET retries = 3, retry_at = clock_now() WHERE job_id = '${id}' AND state = 'pending';
      UPDATE jobs SET next_run_at = clock_now() WHERE id = '${id}'`);
    await waitForJob(service, key, id);
    const rest = linesOf((await service.get(`/jobs/${id}/results?after=3`, key, NDJSON)).text);
    expect(rest.slice(0, -1).map(({ cursor, position }) => `${parseInt(cursor as string, 10)}: ${position}`)).toEqual([
      '4: 6',
      '5: 1',
      '6: 2',
    ]);
    expect(rest.at(-1)).toMatchObject({ next: null, job: { state: 'completed' } });
  });

  it('have no next when the job was canceled, and go on after it is resumed', async () => {
    const { key } = await service.organization();
    const id = await createJob(service, key, { channel: '@harbourlight', limit: 6 });
    await waitForJob(service, key, id, ({ summary: { total, pending } }) => total === 6 && pending === 2);
    await onJob(service, key, 'POST', `${id}/cancel`);
    const { body: canceled } = await service.get(`/jobs/${id}/results`, key);
    expect([canceled.results.length, canceled.next]).toEqual([4, null]);
    await onJob(service, key, 'POST', `${id}/resume`);
    expect((await service.get(`/jobs/${id}/results?after=4`, key)).body).toMatchObject({ results: [], next: at(4) });
  });
});

describe('the results of a job that has ended early', () => {
  it('are 410 after their time, while the job can still be read', async () => {
    const { key } = await service.organization();
    const id = await createJob(service, key, { channel: '@tidewater', limit: 2 });
    const { expiresAt } = await waitForJob(service, key, id);
    await service.query(`UPDATE jobs SET expires_at = clock_now() - interval '1 second' WHERE id = '${id}'`);
    for (const headers of [{}, NDJSON]) {
      const expired = await service.get(`/jobs/${id}/results`, key, headers);
      expect([expired.status, expired.body.error]).toMatchObject([410, { code: 'results_expired', retryable: false }]);
    }
    expect(expiresAt).not.toBeNull();
    expect((await service.get(`/jobs/${id}`, key)).body).toMatchObject({ state: 'completed', summary: { total: 2 } });
  });
});

describe('a reader of results that does not read', () => {
  let key: string;
  let id: string;
  let memory: ResponseMemory;
  const readers: Socket[] = [];
  beforeAll(async () => {
    memory = service.app.get(ResponseMemory);
    ({ key } = await service.organization());
    id = await createJob(service, key, { channel: '@bench-100x1500' });
    await waitForJob(service, key, id);
  });
  afterEach(() => readers.splice(0).forEach((reader) => reader.destroy()));

  /** Requests all results. @returns both ends of the connection */
  async function requested(of = service, owner = key, job = id): Promise<{ reader: Socket; socket: Socket }> {
    const server: Server = of.app.getHttpServer();
    const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
    const { port } = server.address() as AddressInfo;
    const reader = connect(port, '127.0.0.1').pause();
    readers.push(reader);
    reader.write(
      `GET /jobs/${job}/results HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${owner}\r\n` +
        `Accept: application/x-ndjson\r\n\r\n`,
    );
    return { reader, socket: await accepted };
  }

  /** Requests all results, until the service waits for the reader. */
  async function stalled(): Promise<{ reader: Socket; socket: Socket }> {
    const { reader, socket } = await requested();
    // The entries of one read are held, in their stored form.
    await until(() => socket.writableNeedDrain && memory.heldBytes > 0);
    return { reader, socket };
  }

  /** Everything that the reader receives until the connection closes. */
  async function received(reader: Socket): Promise<string> {
    let text = '';
    reader.on('error', () => undefined).on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    await once(reader.resume(), 'close');
    await until(() => memory.heldBytes === 0);
    return text;
  }

  it('holds a small part of them in memory, and receives all of them when it reads', async () => {
    const whole = await rawBody(`/jobs/${id}/results`, key, { ...NDJSON, 'Accept-Encoding': 'identity' });
    const { reader, socket } = await stalled();
    expect(socket.bytesWritten).toBeLessThan(whole.length * 0.7);
    expect(memory.heldBytes).toBeLessThan(whole.length / 8);
    const text = await received(reader);
    expect(text.match(/"type":"result","cursor":"\d+\.[\w-]{8}","position":/g)).toHaveLength(100);
    expect(text).toContain('"type":"summary"');
  });

  it('is disconnected by the limit of all responses', async () => {
    const other = await startService({ stalledReaderMs: 500 });
    const { key } = await other.organization();
    const id = await createJob(other, key, { channel: '@bench-100x1500' });
    await waitForJob(other, key, id);
    const { socket } = await requested(other, key, id);
    await until(() => socket.destroyed && other.app.get(ResponseMemory).heldBytes === 0);
    await other.close();
  });

  it('receives no complete body when the job is deleted meanwhile', async () => {
    const { reader } = await stalled();
    expect((await onJob(service, key, 'DELETE', id)).status).toBe(204);
    const text = await received(reader);
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(text.endsWith('0\r\n\r\n') || text.includes('"type":"summary"')).toBe(false);
  });
});
