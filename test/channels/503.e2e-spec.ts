import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { useOwnTimeouts } from '../jest/wide-timeouts.js';

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
