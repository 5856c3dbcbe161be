import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import { lastValueFrom } from 'rxjs';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { request, clientOf, messageUrl, type MessageReply, type MessageEvent } from './message-client.js';
import { NatsBroker, natsIsInstalled } from './nats-broker.js';

const AT_ONCE = 2;

const byType = (response: MessageReply, type: string): MessageEvent[] =>
  response.events.filter((event) => event.type === type);
const idsOf = (events: MessageEvent[]): string[] => events.map((event) => String(event.result.videoId)).sort();

describe.each(natsIsInstalled ? (['tcp', 'nats'] as const) : (['tcp'] as const))(
  'a call by message over %s',
  (transport) => {
    let broker: NatsBroker | undefined;
    let service: TestService;
    let client: ClientProxy;

    beforeAll(async () => {
      broker = transport === 'nats' ? await NatsBroker.start() : undefined;
      service = await startService({
        environment: {
          MESSAGE_TRANSPORT: transport,
          MESSAGE_PORT: 0,
          NATS_URL: broker && [broker.url],
          CALLS_PER_KEY: AT_ONCE,
          RATE_LIMIT_PER_MINUTE: 1_000,
        },
      });
      client = clientOf(messageUrl(service));
    });
    afterAll(async () => {
      await client.close();
      await service.close();
      await broker?.close();
    });
    beforeEach(() => service.fakeYoutube.reset());

    const lineOf = async (requestId: string): Promise<any> => {
      const find = (): string | undefined =>
        service.logs.find((line) => line.includes('"event":"message"') && line.includes(requestId));
      await until(() => find() !== undefined);
      return JSON.parse(find() ?? '{}');
    };

    it('receives the lines of the HTTP response as events', async () => {
      const { key } = await service.organization();
      const first = await request(client, { apiKey: key, id: '@harbourlight', limit: 10 });
      expect(first.error).toBeUndefined();
      expect(first.events.map((event) => event.type)).toEqual([
        'channel',
        ...Array<string>(10).fill('result'),
        'summary',
      ]);
      expect(byType(first, 'summary')[0]?.summary).toMatchObject({ total: 10, cached: 0 });
      expect((await service.get('/usage', key)).body.used).toBe(byType(first, 'summary')[0]?.summary.fetched);
      const again = await request(client, { apiKey: key, id: '@harbourlight', limit: 10 });
      const http = await service.get('/channels/@harbourlight/transcripts?limit=10', key, {
        Accept: 'application/x-ndjson',
      });
      const lines = http.text
        .trimEnd()
        .split('\n')
        .map((line): unknown => JSON.parse(line));
      expect(again.events).toEqual(lines);
    });

    it('reads uploads, one video, lists of videos and playlists with the fields of the HTTP responses', async () => {
      const { key: apiKey } = await service.organization();
      const listed = await request(client, { apiKey, id: '@tidewater', limit: 2 }, 'channels.uploads');
      expect(listed.events).toEqual([(await service.get('/channels/@tidewater/uploads?limit=2', apiKey)).body]);
      await service.get('/channels/@tidewater/transcripts', apiKey);
      const one = await request(client, { apiKey, id: 'tw-bread___' }, 'videos.transcript');
      expect(one.events).toEqual([(await service.get('/videos/tw-bread___/transcript', apiKey)).body]);
      const videos = ['tw-tea_____', 'https://youtu.be/tw-chowder_', 'tw-tea_____'];
      const list = await request(client, { apiKey, videos, languages: ['en'] }, 'videos.transcripts');
      expect(list.events.map(({ type }) => type)).toEqual(['result', 'result', 'result', 'summary']);
      const playlist = await request(client, { apiKey, id: SATURDAY.id, limit: 2 }, 'playlists.transcripts');
      expect(playlist.events[0]).toEqual({
        type: 'playlist',
        playlist: { id: SATURDAY.id, title: 'A Saturday in the yard' },
      });
      expect(idsOf(byType(playlist, 'result'))).toEqual(['hl-dinghy__', 'tw-bread___']);
    });

    it('takes the parameters of the texts as numbers and lists, with the events of the HTTP response', async () => {
      const { key: apiKey } = await service.organization();
      const texts = { languages: ['fi', '*'], match: 'first', include: ['description', 'chapters'], chunkSeconds: 600 };
      const query = 'languages=fi,*&match=first&include=description,chapters&chunkSeconds=600';
      const eventsOf = async (path: string): Promise<unknown[]> => {
        const { text } = await service.get(path, apiKey, { Accept: 'application/x-ndjson' });
        return text
          .trimEnd()
          .split('\n')
          .map((line): unknown => JSON.parse(line));
      };
      const list = { apiKey, id: '@tidewater', limit: 5, kinds: ['video'], since: 'tw-tea_____', ...texts };
      const listPath = `/channels/@tidewater/transcripts?limit=5&kinds=video&since=tw-tea_____&${query}`;
      await request(client, list);
      const streamed = await request(client, list);
      expect(streamed).toEqual({ events: await eventsOf(listPath), error: undefined });
      const entry = byType(streamed, 'result').find(({ result }) => result.videoId === 'tw-bread___');
      expect(entry?.result.metadata.chapters).toHaveLength(3);
      expect(entry?.result.transcript.en).toHaveLength(1);
      expect(byType(streamed, 'summary')[0]?.summary.sinceFound).toBe(true);
      const saturday = { apiKey, id: SATURDAY.id, limit: 2, kinds: ['video'], ...texts };
      await request(client, saturday, 'playlists.transcripts');
      const playlist = await request(client, saturday, 'playlists.transcripts');
      expect(playlist.events).toEqual(
        await eventsOf(`/playlists/${SATURDAY.id}/transcripts?limit=2&kinds=video&${query}`),
      );
      const one = await request(client, { apiKey, id: 'tw-bread___', ...texts }, 'videos.transcript');
      expect(one.events).toEqual(await eventsOf(`/videos/tw-bread___/transcript?${query}`));
      const uploads = await request(
        client,
        { apiKey, id: '@harbourlight', limit: 2, kinds: ['short'] },
        'channels.uploads',
      );
      expect(uploads.events).toEqual([
        (await service.get('/channels/@harbourlight/uploads?limit=2&kinds=short', apiKey)).body,
      ]);
      const videos = await request(client, { apiKey, videos: ['tw-bread___'], ...texts }, 'videos.transcripts');
      expect(byType(videos, 'result')[0]?.result).toEqual(one.events[0]);
    });

    it.each<[pattern: string, message: object, code: string]>([
      ['videos.transcript', { id: 'hl-silent__' }, 'transcript_unavailable'],
      ['videos.transcript', { id: 'short' }, 'video_not_found'],
      ['videos.transcript', { id: 'tw-tea_____', limit: 5 }, 'invalid_request'],
      ['videos.transcripts', { videos: ['short'] }, 'invalid_request'],
      ['playlists.transcripts', { id: 'PL' }, 'playlist_not_found'],
      ['playlists.transcripts', { id: 'WL' }, 'invalid_request'],
      ['channels.uploads', { id: '@no-such-channel' }, 'channel_not_found'],
    ])('%s %j is refused with %s', async (pattern, message, code) => {
      const { key: apiKey } = await service.organization();
      const { events, error } = await request(client, { apiKey, ...message }, pattern);
      expect([events, error.error.code]).toEqual([[], code]);
    });

    it('for many videos needs the Pro plan, for one video and for uploads any plan', async () => {
      const { key: apiKey } = await service.organization({ plan: 'free' });
      const codes = [];
      for (const pattern of ['videos.transcripts', 'playlists.transcripts', 'channels.transcripts'])
        codes.push((await request(client, { apiKey }, pattern)).error.error.code);
      expect(codes).toEqual(Array(3).fill('feature_not_in_plan'));
      for (const pattern of ['videos.transcript', 'channels.uploads'])
        expect((await request(client, { apiKey }, pattern)).error.error.code).toBe('invalid_request');
    });

    it.each<[string, string, object]>([
      ['several faults', 'limit=x&page=2', { limit: 'x', page: 2 }],
      ['an invalid language', 'languages=e', { languages: ['e'] }],
      ['an original language before others', 'languages=*,en', { languages: ['*', 'en'] }],
      ['other kinds and chunks', 'kinds=shorts&chunkSeconds=10', { kinds: ['shorts'], chunkSeconds: 10 }],
      ['a parameter of another name', 'lang=en&max=3', { lang: 'en', max: 3 }],
    ])('is refused for %s with the error of the HTTP response', async (_name, query, fields) => {
      const { key } = await service.organization();
      const { error } = await request(client, { apiKey: key, id: '@tidewater', ...fields });
      const http = await service.get(`/channels/@tidewater/transcripts?${query}`, key);
      expect(http.status).toBe(400);
      expect(error).toEqual({ error: { ...http.body.error, requestId: expect.any(String) } });
    });

    it.each<[string, unknown]>([
      ['no key', { id: '@tidewater' }],
      ['a key that is not a string', { apiKey: 7, id: '@tidewater' }],
      ['a list', [1]],
    ])('is refused as unauthorized for %s, before any other check', async (_name, message) => {
      const { error } = await request(client, message);
      expect(error.error).toMatchObject({ code: 'unauthorized', retryable: false });
      expect(error.error.message).toContain('apiKey');
    });

    it('passes the checks in order: key, plan, calls in flight, parameters, channel, quota', async () => {
      const code = async (message: object): Promise<unknown> => (await request(client, message)).error?.error.code;
      const free = await service.organization({ plan: 'free' });
      const poor = await service.organization({ monthlyLimit: 0 });
      expect(await code({ apiKey: `${free.key}x`, limit: 0 })).toBe('invalid_api_key');
      expect(await code({ apiKey: free.key, limit: 0 })).toBe('feature_not_in_plan');
      const holding = await service.organization();
      const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, AT_ONCE);
      const held = [1, 2].map((index) => request(client, { apiKey: holding.key, id: `@1-videos-no-${index + 900}` }));
      await hold.arrived;
      const tooMany = await request(client, { apiKey: holding.key, limit: 0 });
      expect(tooMany.error.error).toMatchObject({ code: 'rate_limited', retryable: true, retryAfterSeconds: 2 });
      hold.release();
      await Promise.all(held);
      expect(await code({ apiKey: holding.key, id: '@emptyslip' })).toBeUndefined();
      expect(await code({ apiKey: poor.key, id: '@nobody-here', limit: 0 })).toBe('invalid_request');
      expect(await code({ apiKey: poor.key, id: 'not a channel!' })).toBe('channel_not_found');
      const { error } = await request(client, { apiKey: poor.key, id: '@fogsignalradio', limit: 3 });
      expect(error.error).toMatchObject({ code: 'plan_limit_exceeded', limit: 0, used: 0, required: 3 });
    });

    it('shares the rate limit of its key with HTTP calls', async () => {
      const { key } = await service.organization();
      const before = Number((await service.get('/usage', key)).headers['x-ratelimit-remaining']);
      await request(client, { apiKey: key, id: '@emptyslip' });
      const after = Number((await service.get('/usage', key)).headers['x-ratelimit-remaining']);
      expect(before - after).toBe(2);
    });

    it('has the request id of its sender in its error and its log line, which contains no key', async () => {
      const { key, keyId, id } = await service.organization();
      const requestId = `sender-${transport}-1`;
      const { error } = await request(client, { apiKey: key, id: 'not a channel!', requestId });
      expect(error.error.requestId).toBe(requestId);
      const line = await lineOf(requestId);
      expect(line).toMatchObject({
        pattern: 'channels.transcripts',
        code: 'channel_not_found',
        keyId,
        organizationId: id,
      });
      const made = await request(client, { apiKey: key, id: 'not a channel!', requestId: 'has spaces' });
      expect(made.error.error.requestId).toMatch(/^[0-9a-f-]{36}$/);
    });

    it('that expects no reply is ignored: it is neither counted nor charged', async () => {
      const { key } = await service.organization();
      const remaining = async () => Number((await service.get('/usage', key)).headers['x-ratelimit-remaining']);
      const before = await remaining();
      await lastValueFrom(client.emit('channels.transcripts', { apiKey: key, id: '@tidewater' }), {
        defaultValue: undefined,
      });
      // Sent on the same connection, so it is read after the event.
      expect((await request(client, { apiKey: key, id: '@emptyslip' })).error).toBeUndefined();
      expect(before - (await remaining())).toBe(2);
    });
  },
);
