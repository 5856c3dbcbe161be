import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { generatedChannelByHandle } from '../fake-youtube/catalogue/generated-channels.js';
import { until } from '../harness/until.js';
import type { HttpResponse } from '../harness/http-request.js';
import { ProxiedReplicas, send, type Replica } from './proxied-replicas.js';
import { nginxIsInstalled } from './nginx-server.js';

// Processes are stopped and started under load, one after another.

const CALLERS = 4;
const VIDEOS = 3;

let replicas: ProxiedReplicas;
let customer: { id: string; key: string };
let channels = 1_000;

const get = (path: string, headers: Record<string, string> = {}): Promise<HttpResponse> =>
  send(replicas.nginx, path, { headers: { Authorization: `Bearer ${customer.key}`, ...headers } });
/** A channel with this many videos that is not cached. */
const newChannel = (videos = VIDEOS): string => `/channels/@${videos}-videos-no-${(channels += 1)}/transcripts`;
const fetchedIn = ({ text }: HttpResponse): number =>
  (JSON.parse(text) as { summary: { fetched: number } }).summary.fetched;

/** Clients that request uncached channels one after another until they are stopped. */
function load(): { responses: HttpResponse[]; stop: () => Promise<void> } {
  const answers: HttpResponse[] = [];
  let stopped = false;
  // nginx repeats no POST.
  const post = (): Promise<HttpResponse> => {
    const videos = generatedChannelByHandle(`@${VIDEOS}-videos-no-${(channels += 1)}`)
      ?.uploads()
      .map(({ id }) => id);
    const headers = { Authorization: `Bearer ${customer.key}`, 'Content-Type': 'application/json' };
    return send(replicas.nginx, '/transcripts', { method: 'POST', headers, body: JSON.stringify({ videos }) });
  };
  const caller = async (_: unknown, index: number): Promise<void> => {
    while (!stopped) answers.push(await (index % 2 === 0 ? get(newChannel()) : post()));
  };
  const callers = Promise.all(Array.from({ length: CALLERS }, caller));
  const stop = async (): Promise<void> => {
    stopped = true;
    await callers;
  };
  return { responses: answers, stop };
}

async function moreResponses(answers: readonly HttpResponse[], count: number): Promise<void> {
  const before = answers.length;
  await until(() => answers.length >= before + count);
}

// Skipped without nginx; continuous integration installs it.
(nginxIsInstalled ? describe : describe.skip)('behind nginx, if one of two processes', () => {
  beforeAll(async () => {
    replicas = await ProxiedReplicas.start();
  });
  afterAll(() => replicas.close());
  beforeEach(async () => {
    replicas.fakeYoutube.reset();
    customer = await replicas.customer(1_000_000);
  });

  it('restarts under load, one process after the other, every call has a complete response', async () => {
    // Calls that wait for most of their time: without it they take the processor from the processes that start.
    replicas.fakeYoutube.set({ latencyMs: 300 });
    const { responses, stop } = load();
    await moreResponses(responses, 2 * CALLERS);
    for (const replica of replicas.replicas) {
      expect(await replica.program.stop('SIGTERM')).toEqual({ code: 0, signal: null });
      await moreResponses(responses, 2 * CALLERS);
      await replicas.restart(replica);
      // Of either kind: where nginx takes turns, all calls of one kind can go to the other process.
      await until(() => /"path":"\/(?:channels\/|transcripts")/.test(replica.program.stdout));
    }
    await stop();
    expect(responses.filter(({ status, whole }) => status !== 200 || !whole)).toEqual([]);
    expect(new Set(responses.map(fetchedIn))).toEqual(new Set([VIDEOS]));
    expect(await replicas.database.quota.usage(customer.id)).toMatchObject({
      used: VIDEOS * responses.length,
      reserved: 0,
    });
  });

  it('loses its database, the other serves every call until it is available again', async () => {
    const [first] = replicas.replicas;
    first.link.cut();
    await until(async () => (await fetch(`http://127.0.0.1:${first.port}/health/ready`)).status === 503);
    const answers: HttpResponse[] = [];
    for (let call = 0; call < 8; call += 1) answers.push(await get('/usage'), await get(newChannel(1)));
    expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(200));
    expect((await get('/health/ready')).status).toBe(200);
    expect(first.program.stdout).toContain('"status":503');
    first.link.join();
    await until(async () => (await fetch(`http://127.0.0.1:${first.port}/health/ready`)).status === 200);
    const ids = Array.from({ length: 20 }, (_, index) => `back-again-${index}-end`);
    for (const id of ids) await get('/usage', { 'X-Request-Id': id });
    expect(Math.min(...(await replicas.servedBy(ids)))).toBeGreaterThanOrEqual(6);
  });

  it('is killed during a response, its client sees that the response is incomplete, and the next call is served', async () => {
    const hold = replicas.fakeYoutube.hold({ kind: 'timedtext' });
    const path = newChannel();
    const id = 'killed-in-mid-answer';
    const responding = get(path, { 'X-Request-Id': id });
    await hold.arrived;
    const victim = await holderOfTheOneCall();
    await victim.program.stop('SIGKILL');
    const cut = await responding;
    expect({ status: cut.status, whole: cut.whole }).toEqual({ status: 200, whole: false });
    hold.release();
    // The reservation of the killed process lasts until its lease ends, and is not charged.
    expect(await replicas.database.quota.usage(customer.id)).toMatchObject({ used: 0, reserved: VIDEOS });
    const again = await get(path);
    expect([again.status, fetchedIn(again)]).toEqual([200, VIDEOS]);
    expect(await replicas.database.quota.usage(customer.id)).toMatchObject({ used: VIDEOS, reserved: VIDEOS });
  });

  // The last test: one of the processes has ended before it.
  it('and the other one are unavailable, the client receives a retryable 503 in the error envelope, and the error log has no token of a feed', async () => {
    await Promise.all(replicas.replicas.map(({ program }) => program.stop()));
    const feed = await get(`/feed/ctf_${'a'.repeat(49)}.atom`);
    expect([feed.status, feed.headers['retry-after']]).toEqual([503, '5']);
    const response = await get('/usage', { 'X-Request-Id': 'nobody-there' });
    expect(response.status).toBe(503);
    expect(response.headers).toMatchObject({ 'retry-after': '5', 'x-request-id': 'nobody-there' });
    expect(JSON.parse(response.text)).toEqual({
      error: {
        code: 'service_unavailable',
        retryable: true,
        docs: '/docs/errors#service_unavailable',
        requestId: 'nobody-there',
        message: 'The service is temporarily unreachable. Retry after 5 seconds.',
      },
    });
    await until(() => replicas.nginx.errors.includes('GET /usage'));
    expect(replicas.nginx.errors).not.toContain('ctf_');
    await replicas.restart(replicas.replicas[0]);
    expect((await get('/usage')).status).toBe(200);
  });
});

/** The process with the one call in flight: the other receives the next call, since it has fewer. */
async function holderOfTheOneCall(): Promise<Replica> {
  const id = 'goes-to-the-idle-one';
  await get('/usage', { 'X-Request-Id': id });
  const [first] = await replicas.servedBy([id]);
  return replicas.replicas[first === 1 ? 1 : 0];
}
