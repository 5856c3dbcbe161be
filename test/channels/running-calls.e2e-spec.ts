import { afterAll, beforeAll, beforeEach, describe, expect, it, afterEach } from '@jest/globals';
import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaService } from '../../src/quota/quota.service.js';
import { TranscriptsService } from '../../src/transcripts/transcripts.service.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';
import { stallTable } from '../database/lock-table.js';
import { until } from '../harness/until.js';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

describe('a change during a call', () => {
  let organizations: OrganizationsService;
  let quota: QuotaService;

  beforeAll(() => {
    organizations = service.app.get(OrganizationsService);
    quota = service.app.get(QuotaService);
  });
  let channels = 0;
  /** A channel of four videos that are not cached. */
  const newChannel = (): string => `/channels/@4-videos-no-${(channels += 1)}/transcripts`;

  /** Makes a call for four transcripts, applies the change while it fetches, and lets it complete. */
  async function whileCalling({ key }: TestOrganization, change: () => Promise<unknown>): Promise<void> {
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const running = service.get(newChannel(), key);
    await hold.arrived;
    await change();
    hold.release();
    const response = await running;
    expect([response.status, response.body.summary.fetched]).toEqual([200, 4]);
  }

  describe('during a call', () => {
    it('a revoked key lets the running call complete and be charged, and is refused from the next call on', async () => {
      const organization = await service.organization();
      await whileCalling(organization, async () => {
        await service.app.get(ApiKeysService).revoke(organization.keyId);
        expect((await service.get(newChannel(), organization.key)).status).toBe(401);
      });
      expect(await quota.usage(organization.id)).toMatchObject({ used: 4, reserved: 0 });
    });

    it('a deleted organization lets the running call complete and be charged, and is refused from the next call on', async () => {
      const organization = await service.organization();
      await whileCalling(organization, async () => {
        await organizations.delete(organization.id);
        expect((await service.get(newChannel(), organization.key)).status).toBe(401);
      });
      expect(await quota.verify(organization.id)).toMatchObject({
        exact: true,
        periods: [{ used: 4, recomputed: 4, settledCalls: 1 }],
      });
    });
  });

  describe('a call whose organization is deleted before its reservation', () => {
    it('is refused like a call with an invalid key, and costs nothing', async () => {
      const organization = await service.organization();
      const hold = service.fakeYoutube.hold({ kind: 'browse-uploads' });
      const running = service.get(newChannel(), organization.key);
      await hold.arrived;
      await organizations.delete(organization.id);
      hold.release();
      const response = await running;
      expect([response.status, response.body.error.code]).toEqual([401, 'invalid_api_key']);
      expect(service.fakeYoutube.requests.count({ kind: ['player', 'timedtext'] })).toBe(0);
    });
  });

  it('a shutdown waits for the settlement of a call that is still being planned', async () => {
    const { id, key } = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'browse-uploads' });
    const running = service.get(newChannel(), key);
    await hold.arrived;
    const idle = service.app.get(TranscriptsService).idle();
    hold.release();
    await idle;
    expect(await quota.usage(id)).toMatchObject({ used: 4, reserved: 0 });
    await running;
  });
});

async function usage({ key }: TestOrganization): Promise<{ used: number; reserved: number }> {
  const { used, reserved } = (await service.get('/usage', key)).body as { used: number; reserved: number };
  return { used, reserved };
}

/** A call whose client can disconnect, and the text that it has received. */
function leavableCall(path: string, { key }: TestOrganization): { disconnect(): void; received(): string } {
  const leaving = new AbortController();
  let text = '';
  const read = async (): Promise<void> => {
    const headers = { Authorization: `Bearer ${key}`, 'Accept-Encoding': 'identity' };
    const response = await fetch(service.url + path, { headers, signal: leaving.signal });
    for await (const bytes of response.body ?? []) text += Buffer.from(bytes).toString();
  };
  void read().catch(() => undefined);
  return { disconnect: () => leaving.abort(), received: () => text };
}

describe('concurrent calls for the same videos', () => {
  it('share one fetch: the call that started it is charged, the other receives the transcript as cached', async () => {
    const [payer, other] = [await service.organization(), await service.organization()];
    const path = '/channels/@4-videos-no-20/transcripts';
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const first = service.get(path, payer.key);
    await hold.arrived;
    const second = service.get(path, other.key);
    await until(async () => (await usage(other)).reserved === 4);
    hold.release();
    const [paid, free] = await Promise.all([first, second]);
    expect(paid.body.summary).toMatchObject({ fetched: 4, cached: 0 });
    expect(free.body.summary).toMatchObject({ fetched: 0, cached: 4 });
    expect(service.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(4);
    expect([await usage(payer), await usage(other)]).toEqual([
      { used: 4, reserved: 0 },
      { used: 0, reserved: 0 },
    ]);
  });

  it('continue for the remaining client when the client that started them disconnects, and charge the remaining client', async () => {
    const [leaver, stayer] = [await service.organization(), await service.organization()];
    const path = '/channels/@3-videos-no-21/transcripts';
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const leaving = leavableCall(path, leaver);
    await hold.arrived;
    const staying = service.get(path, stayer.key);
    await until(async () => (await usage(stayer)).reserved === 3);
    leaving.disconnect();
    await until(async () => (await usage(leaver)).reserved === 0);
    hold.release();
    expect((await staying).body.summary).toMatchObject({ fetched: 3, cached: 0 });
    expect(service.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(3);
    expect([await usage(leaver), await usage(stayer)]).toEqual([
      { used: 0, reserved: 0 },
      { used: 3, reserved: 0 },
    ]);
  });
});

describe('a look-up in the cache', () => {
  let cache: Cache;
  /** The number of videos in each. */
  let lookups: number[];
  /** The keys of the stored transcripts, each of which several events name. */
  let stored: Set<string>;
  const countLookup = ({ keys }: { keys: string[] }): void => void lookups.push(keys.length);
  const countStored = ({ key }: { key: string }): void => void (key.includes(':transcript:') && stored.add(key));

  beforeEach(() => {
    lookups = [];
    stored = new Set();
    cache = service.app.get<Cache>(CACHE_MANAGER);
    cache.on('mget', countLookup);
    cache.on('set', countStored);
  });
  afterEach(() => {
    cache.off('mget', countLookup);
    cache.off('set', countStored);
  });

  it('is made once for all videos of a call, also when none is cached', async () => {
    const { key } = await service.organization();
    const path = '/channels/@30-videos-no-23/transcripts?limit=30';
    expect((await service.get(path, key)).body.summary).toMatchObject({ fetched: 30 });
    expect((await service.get(path, key)).body.summary).toMatchObject({ cached: 30 });
    expect(lookups).toEqual([30, 30]);
  });

  it('is made again for what another call fetched while this one waited for its reservation, which is then free', async () => {
    const [payer, waiting] = [await service.organization(), await service.organization()];
    const path = '/channels/@4-videos-no-24/transcripts';
    const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
    const first = service.get(path, payer.key);
    await hold.arrived;
    const release = await stallTable(service.databaseUrl, 'quota_reservations');
    const second = service.get(path, waiting.key);
    await until(() => lookups.length === 2);
    hold.release();
    await until(() => stored.size === 4);
    await release();
    expect((await first).body.summary).toMatchObject({ fetched: 4, cached: 0 });
    expect((await second).body.summary).toMatchObject({ fetched: 0, cached: 4 });
    expect(service.fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(4);
    expect([await usage(payer), await usage(waiting)]).toEqual([
      { used: 4, reserved: 0 },
      { used: 0, reserved: 0 },
    ]);
  });
});

describe('a client that disconnects during a call', () => {
  it('is charged for what was fetched, frees the rest of the reservation, and stops fetches that no one waits for', async () => {
    const organization = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext', path: 'fs-22[0-9]' });
    const leaving = leavableCall('/channels/@fogsignalradio/transcripts?limit=8', organization);
    await hold.arrived;
    await until(() => leaving.received().includes('fs-230'));
    expect((await usage(organization)).reserved).toBe(8);
    leaving.disconnect();
    await until(async () => (await usage(organization)).reserved === 0);
    // Only the newest was not held at the platform.
    expect((await usage(organization)).used).toBe(1);
    await service.fakeYoutube.requests.until((log) => log.inFlight === 0);
    expect(service.fakeYoutube.requests.aborted).toBeGreaterThan(0);
    hold.release();
    const again = await service.get('/channels/@fogsignalradio/transcripts?limit=8', organization.key);
    expect(again.body.summary).toMatchObject({ cached: 1, fetched: 7 });
    expect((await usage(organization)).used).toBe(8);
  });

  it('is not charged while the channel is requested, and that request is aborted', async () => {
    const organization = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'browse-uploads' });
    const leaving = leavableCall('/channels/@5-videos-no-22/transcripts', organization);
    await hold.arrived;
    leaving.disconnect();
    await service.fakeYoutube.requests.until((log) => log.inFlight === 0);
    expect(await usage(organization)).toEqual({ used: 0, reserved: 0 });
  });
});

describe('a response', () => {
  it('is sent entry by entry, while later entries are still being fetched', async () => {
    const organization = await service.organization();
    const hold = service.fakeYoutube.hold({ kind: 'timedtext', path: 'fs-219' });
    const call = leavableCall('/channels/@fogsignalradio/transcripts?limit=14', organization);
    await hold.arrived;
    await until(() => call.received().includes('"videoId":"fs-220'));
    expect(call.received()).toMatch(/^\{"channel":\{.*\},"results":\[\{"videoId":"fs-230/);
    expect(call.received()).not.toContain('"videoId":"fs-219');
    hold.release();
    await until(() => /"summary":\{[^}]*\}\}$/.test(call.received()));
    expect(JSON.parse(call.received())).toMatchObject({ summary: { total: 14 } });
  });
});
