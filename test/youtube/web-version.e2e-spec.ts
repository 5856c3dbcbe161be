import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { HARBOUR_LIGHT } from '../fake-youtube/catalogue/harbour-light.js';
import { FOG_SIGNAL, TIDEWATER } from '../fake-youtube/catalogue/other-channels.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { type Adapter, context, listUploads, openAdapter } from './adapter.js';

/** That of this release, and the one that the fake YouTube states. */
const RELEASE = '2.20260805.01.00';
const CURRENT = '2.20261120.01.00';

let fakeYoutube: FakeYoutube;
let adapter: Adapter;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
});
beforeEach(async () => {
  fakeYoutube.reset();
  adapter = await openAdapter(fakeYoutube.url);
});
afterEach(() => adapter.close());
afterAll(() => fakeYoutube.close());

const list = async (channelId: string) => (await listUploads(adapter.platform, channelId, 25)).uploads.length;
const resolve = () => adapter.platform.resolveChannel({ kind: 'handle', handle: 'harbourlight' }, context());
const events = (name: string) => adapter.logged.filter(({ event }) => event === name);
const versions = () => [
  ...new Set(
    fakeYoutube.requests.list.flatMap(({ kind, clientVersion }) => (kind.startsWith('browse') ? [clientVersion] : [])),
  ),
];
const retired = async (): Promise<unknown> => {
  const metric = await adapter.registry.getSingleMetric('ct_upstream_client_retired')?.get();
  return metric?.values.find(({ labels }) => labels['client'] === 'WEB')?.value;
};

describe('a version of WEB that the platform does not serve any more', () => {
  beforeEach(() => fakeYoutube.set({ webVersionsRetired: [RELEASE] }));

  it('is replaced by the current one, for lists, names and channels, without a restart', async () => {
    expect(await list(FOG_SIGNAL.id)).toBe(100);
    expect(await resolve()).toBe(HARBOUR_LIGHT.id);
    await expect(adapter.platform.readChannel(HARBOUR_LIGHT.id, context())).resolves.toMatchObject({
      handle: '@harbourlight',
    });
    expect(events('youtube_client_retired')).toEqual([
      { event: 'youtube_client_retired', client: 'WEB', replacedBy: CURRENT },
    ]);
    expect(await retired()).toBe(1);
    fakeYoutube.requests.clear();
    expect(await list(HARBOUR_LIGHT.id)).toBeGreaterThan(20);
    expect(versions()).toEqual([CURRENT]);
    expect(events('youtube_block_opened')).toEqual([]);
  });

  it('is found out once by all lists that are refused at a time, with three controls', async () => {
    const read = await Promise.all([FOG_SIGNAL, HARBOUR_LIGHT, TIDEWATER].map(({ id }) => list(id)));
    expect(read.every((count) => count > 0)).toBe(true);
    expect(fakeYoutube.requests.count({ kind: 'client-version' })).toBe(1);
    // Two with the retired version, of which one without its headers, and one with the current version.
    expect(fakeYoutube.requests.count({ kind: 'resolve' })).toBe(3);
    expect(events('youtube_client_retired')).toHaveLength(1);
  });

  it('ends no list of a job: its continuation is taken', async () => {
    fakeYoutube.set({ webVersionsRetired: [] });
    const { next } = await adapter.platform.uploads(FOG_SIGNAL.id, undefined, context());
    fakeYoutube.set({ webVersionsRetired: [RELEASE] });
    expect((await adapter.platform.uploads(FOG_SIGNAL.id, next ?? '', context())).uploads).toHaveLength(100);
  });

  it.each(['500', '429', 'not-json', 'hang'] as const)(
    'is read without the headers of the version when the current one is not stated (%s)',
    async (kind) => {
      await adapter.close();
      adapter = await openAdapter(fakeYoutube.url, { UPSTREAM_TIMEOUT_SECONDS: 1 });
      fakeYoutube.setFaults({ kind, match: { kind: 'client-version' } });
      expect(await list(FOG_SIGNAL.id)).toBe(100);
      expect(events('youtube_client_retired')).toMatchObject([{ replacedBy: 'no version headers' }]);
      expect(await retired()).toBe(1);
      expect(events('youtube_block_opened')).toEqual([]);
    },
  );

  it.each(['2.1', 'WEB', '2.99991231.01.00', '2.20261399.00.00'])('is not replaced by %j', async (webVersion) => {
    fakeYoutube.set({ webVersion });
    expect(await list(FOG_SIGNAL.id)).toBe(100);
    expect(versions()).toEqual([RELEASE]);
  });

  it('is not replaced by one that is not served either', async () => {
    fakeYoutube.set({ webVersion: '2.20261101.01.00', webVersionsRetired: [RELEASE, '2.20261101.01.00'] });
    expect(await list(FOG_SIGNAL.id)).toBe(100);
    expect(events('youtube_client_retired')).toMatchObject([{ replacedBy: 'no version headers' }]);
  });

  it('is not sent when the operator has set another one', async () => {
    await adapter.close();
    const overrides = { WEB: { clientVersion: '2.20261001.01.00' } };
    adapter = await openAdapter(fakeYoutube.url, { YOUTUBE_CLIENT_OVERRIDES: overrides });
    expect(await list(FOG_SIGNAL.id)).toBe(100);
    expect(versions()).toEqual(['2.20261001.01.00']);
    expect([fakeYoutube.requests.count({ kind: 'client-version' }), await retired()]).toEqual([0, 0]);
    fakeYoutube.set({ webVersionsRetired: ['2.20261001.01.00'] });
    expect(await list(HARBOUR_LIGHT.id)).toBeGreaterThan(20);
    expect(await retired()).toBe(1);
  });
});

describe('a 400', () => {
  it('of an ID that is none concerns that ID, and costs a control', async () => {
    await expect(adapter.platform.readChannel('nothing', context())).rejects.toMatchObject({
      code: 'channel_not_found',
    });
    expect(fakeYoutube.requests.count({ kind: 'resolve' })).toBe(1);
    expect([fakeYoutube.requests.count({ kind: 'client-version' }), await retired()]).toEqual([0, 0]);
  });
});
