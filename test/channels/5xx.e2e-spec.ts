import { afterAll, beforeAll, beforeEach, describe, expect, it, afterEach } from '@jest/globals';
import { startService, type TestService, type ServiceResponse } from '../harness/service.js';
import { stallTable } from '../database/lock-table.js';
import { until } from '../harness/until.js';
import { useOwnTimeouts } from '../jest/wide-timeouts.js';

describe('a channel that the platform refuses to return', () => {
  let service: TestService;
  let key: string;

  beforeAll(async () => {
    service = await startService({ environment: { UPSTREAM_RETRIES: 0 } });
    ({ key } = await service.organization());
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  it('is requested again as soon as the platform responds', async () => {
    const { key } = await service.organization();
    service.fakeYoutube.setFaults({ kind: '500', match: { kind: ['resolve', 'browse'] } });
    expect((await service.get('/channels/@2-videos-no-7/transcripts', key)).status).toBe(502);
    service.fakeYoutube.setFaults();
    expect((await service.get('/channels/@2-videos-no-7/transcripts', key)).status).toBe(200);
  });

  it.each([
    ['500', 'upstream_failure'],
    ['reset', 'upstream_failure'],
    ['truncated', 'upstream_failure'],
    ['not-json', 'upstream_failure'],
    ['429', 'upstream_blocked'],
    ['captcha', 'upstream_blocked'],
    ['consent', 'upstream_blocked'],
    ['empty', 'upstream_blocked'],
  ] as const)('(%s) is 502 %s, retryable, and costs nothing', async (kind, code) => {
    service.fakeYoutube.setFaults({ kind, match: { kind: ['resolve', 'browse'] } });
    // A different channel each time, since earlier results are cached.
    const response = await service.get(
      `/channels/@${kind.length + 3}-videos-no-${code.length + kind.charCodeAt(0)}/transcripts?limit=3`,
      key,
    );
    expect([response.status, response.body?.error.code]).toEqual([502, code]);
    // The first refusal pauses the egress, and the response has the rest of that pause too.
    expect(response.headers['retry-after'] !== undefined).toBe(code === 'upstream_blocked');
    expect(response.body.error).toMatchObject({ retryable: true, requestId: response.headers['x-request-id'] });
    expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
  });
});

describe('504', () => {
  let service: TestService;

  beforeAll(async () => {
    // A busy machine takes seconds until the call is held.
    service = await startService({ environment: { REQUEST_DEADLINE_SECONDS: 15, UPSTREAM_RETRIES: 0 } });
  });
  afterAll(() => service.close());

  describe('at the deadline of a call', () => {
    const call = async (path: string): Promise<{ response: ServiceResponse; key: string }> => {
      const { key } = await service.organization();
      return { response: await service.get(path, key), key };
    };
    const usage = async (key: string): Promise<unknown> => (await service.get('/usage', key)).body;

    // Three calls that wait for their deadline together: each is held before the next one starts.
    let fetching: Awaited<ReturnType<typeof call>>;
    let listing: Awaited<ReturnType<typeof call>>;
    let resolving: Awaited<ReturnType<typeof call>>;
    beforeAll(async () => {
      const held: Promise<Awaited<ReturnType<typeof call>>>[] = [];
      for (const [match, path] of [
        [{ kind: 'timedtext', path: 'fs-229' }, '/channels/@fogsignalradio/transcripts?limit=3'],
        [{ kind: 'browse-uploads' }, '/channels/@3-videos-no-5/transcripts'],
        [{ kind: 'resolve' }, '/channels/@3-videos-no-6/transcripts'],
      ] as const) {
        const hold = service.fakeYoutube.hold(match);
        held.push(call(path));
        await hold.arrived;
      }
      [fetching, listing, resolving] = (await Promise.all(held)) as [typeof fetching, typeof listing, typeof resolving];
      await service.fakeYoutube.requests.until((log) => log.inFlight === 0);
    });

    it('a call whose channel is still being requested is 504, and that request is aborted', async () => {
      for (const { response, key } of [listing, resolving]) {
        expect([response.status, response.body?.error.code]).toEqual([504, 'upstream_timeout']);
        expect(response.body.error.retryable).toBe(true);
        expect(await usage(key)).toMatchObject({ used: 0, reserved: 0 });
      }
    });

    it('fetched transcripts are returned and charged, the others are upstream_timeout and free', async () => {
      const { response, key } = fetching;
      expect(response.status).toBe(200);
      expect(response.body.summary).toEqual({ total: 3, succeeded: 2, failed: 1, cached: 0, fetched: 2 });
      expect(response.body.results[1].error).toMatchObject({ code: 'upstream_timeout', retryable: true });
      expect(await usage(key)).toMatchObject({ used: 2, reserved: 0 });
    });

    it('a database that stalls during the settlement does not hold back the summary', async () => {
      service.fakeYoutube.reset();
      const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
      const running = call('/channels/@2-videos-no-3/transcripts?limit=1');
      await hold.arrived;
      const release = await stallTable(service.databaseUrl, 'quota_reservations');
      // The lock is released only after the response.
      const { body } = (await running).response;
      await release();
      hold.release();
      expect(body.results[0].error.code).toBe('upstream_timeout');
      expect(body.summary).toMatchObject({ total: 1, failed: 1 });
    });
  });

  describe('a call that the pace cannot serve before its deadline', () => {
    let paced: TestService;

    beforeAll(async () => {
      paced = await startService({ environment: { REQUEST_DEADLINE_SECONDS: 20, UPSTREAM_TIMEDTEXT_PER_MINUTE: 2 } });
    });
    afterAll(() => paced.close());

    it('fails the videos behind at once as upstream_busy, free and with the time, and the next call continues', async () => {
      const { key } = await paced.organization();
      const path = '/channels/@4-videos-no-5/transcripts';
      const first = await paced.get(path, key);
      expect(first.status).toBe(200);
      expect(first.body.summary).toEqual({ total: 4, succeeded: 1, failed: 3, cached: 0, fetched: 1 });
      const failed = first.body.results.filter((entry: { ok: boolean }) => !entry.ok);
      for (const { error } of failed) {
        expect(error).toMatchObject({ code: 'upstream_busy', retryable: true, retryAfterSeconds: expect.any(Number) });
        expect(error.retryAfterSeconds).toBeGreaterThanOrEqual(2);
      }
      expect(paced.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(1);
      expect((await paced.get('/usage', key)).body).toMatchObject({ used: 1, reserved: 0 });
      const second = await paced.get(path, key);
      expect(second.body.summary).toMatchObject({ total: 4, cached: 1 });
    });
  });
});

describe('503', () => {
  let service: TestService;

  beforeAll(async () => {
    // Some connections become silent.
    useOwnTimeouts();
    // Polling `/usage` exceeds the default limit.
    service = await startService({ interruptible: true, environment: { RATE_LIMIT_PER_MINUTE: 0 } });
  });
  afterAll(() => service.close());
  afterEach(() => service.link.join());

  describe('while the database is unavailable', () => {
    it('a call is 503 with Retry-After, and works again without a restart when the database is back', async () => {
      const { key } = await service.organization();
      service.link.cut();
      const response = await service.get('/channels/@tidewater/transcripts?limit=1', key);
      expect([response.status, response.body?.error.code]).toEqual([503, 'service_unavailable']);
      expect(response.body.error).toMatchObject({ retryable: true, requestId: response.headers['x-request-id'] });
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
      expect(response.text).not.toMatch(/ECONN|postgres|127\.0\.0\.1/);
      expect((await service.get('/usage', key)).status).toBe(503);
      service.link.join();
      expect((await service.get('/channels/@tidewater/transcripts?limit=1', key)).status).toBe(200);
    });

    it('a call is 503 before its deadline, even when the database hangs instead of refusing connections', async () => {
      const { key } = await service.organization();
      service.link.silence();
      // At the deadline it would be 504.
      const answer = await service.get('/channels/@tidewater/transcripts?limit=1', key);
      expect([answer.status, answer.body?.error.code]).toEqual([503, 'service_unavailable']);
      // The connections that hang now stay so.
      service.link.cut();
    });

    it('the service is alive but not ready, and names the unavailable dependency', async () => {
      service.link.cut();
      expect((await service.request('GET', '/health/live')).status).toBe(200);
      await until(async () => (await service.request('GET', '/health/ready')).status === 503);
      const ready = await service.request('GET', '/health/ready');
      expect(ready.body).toMatchObject({
        status: 'unavailable',
        dependencies: { database: { status: 'down', critical: true }, cache: { status: 'up', critical: false } },
      });
      service.link.join();
      await until(async () => (await service.request('GET', '/health/ready')).status === 200);
    });

    it('an admitted call gets its complete response, and is charged when the database is available again', async () => {
      const { key } = await service.organization();
      const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
      const running = service.get('/channels/@fogsignalradio/transcripts?limit=3', key);
      await hold.arrived;
      service.link.cut();
      hold.release();
      const answer = await running;
      expect(answer.body.summary).toEqual({ total: 3, succeeded: 3, failed: 0, cached: 0, fetched: 3 });
      service.link.join();
      // The pauses between settlements grow to several seconds.
      await until(async () => {
        const { body } = await service.get('/usage', key);
        return body.used === 3 && body.reserved === 0;
      });
    });
  });

  describe('while the process is at capacity', () => {
    it('a call of any key is 503 with Retry-After and no side effects, and is admitted when another call ends', async () => {
      const busy = await startService({ environment: { CALLS_PER_PROCESS: 1, CALLS_PER_KEY: 1 } });
      try {
        const [one, other] = [await busy.organization(), await busy.organization()];
        const hold = busy.fakeYoutube.hold({ kind: 'timedtext' });
        const running = busy.get('/channels/@1-videos-no-1/transcripts', one.key);
        await hold.arrived;
        const answer = await busy.get('/channels/@1-videos-no-2/transcripts', other.key);
        expect(answer.status).toBe(503);
        expect(answer.body.error).toMatchObject({ code: 'service_unavailable', retryable: true });
        expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
        expect((await busy.get('/usage', other.key)).body).toMatchObject({ used: 0, reserved: 0 });
        hold.release();
        expect((await running).status).toBe(200);
        expect((await busy.get('/channels/@1-videos-no-2/transcripts', other.key)).status).toBe(200);
      } finally {
        await busy.close();
      }
    });
  });
});
