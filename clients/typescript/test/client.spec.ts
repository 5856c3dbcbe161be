import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  AdminClient,
  ChannelTranscriptsClient,
  isChannelTranscriptsError,
  OPERATIONS,
  type ChannelTranscripts,
  type TokenProvider,
} from '../src/index.js';
import { pause } from '../src/http.js';
import { json, lost, refusal, scripted, unavailable, type SentRequest } from './scripted-fetch.js';

const ANSWER: ChannelTranscripts = {
  channel: { id: 'UCtidewater_____________', name: 'Tidewater Kitchen', handle: '@tidewater' },
  results: [],
  summary: { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0 },
};
const PROXY_PAGE = new Response('<h1>Bad gateway</h1>', { status: 502, headers: { 'Content-Type': 'text/html' } });

type Call = [string, (client: ChannelTranscriptsClient) => Promise<unknown>];
const CHARGED: Call[] = [
  ['transcripts', (client) => client.transcripts('@tidewater')],
  ['events', (client) => client.events('@tidewater').next()],
  ['playlist', (client) => client.playlist('PLsaturday')],
  ['videos', (client) => client.videos(['tw-chowder_'])],
  ['video', (client) => client.video('tw-chowder_')],
  ['videoAs', (client) => client.videoAs('srt', 'tw-chowder_')],
];
const FREE: Call[] = [
  ['usage', (client) => client.usage()],
  ['uploads', (client) => client.uploads('@tidewater')],
  ['playlistVideos', (client) => client.playlistVideos('PLsaturday')],
  ['jobs.get', (client) => client.jobs.get('job_1')],
  ['webhooks.list', (client) => client.webhooks.list()],
];

function clientOf(...steps: Parameters<typeof scripted>) {
  const service = scripted(...steps);
  return { client: new ChannelTranscriptsClient(service.options, service.wait), ...service };
}

interface Documented {
  operationId: string;
  parameters?: { name: string }[];
  requestBody?: { content: { 'application/json': { schema: { $ref?: string } } } };
}
const { paths, components } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../tools/openapi/openapi.json'), 'utf8'),
) as {
  paths: Record<string, Record<string, Documented>>;
  components: { schemas: Record<string, { properties: object }> };
};

/** The names that a call sends and its operation has not. */
function undocumented(path: string, method: string, { path: sent, body }: SentRequest): string[] {
  const operation = paths[path]?.[method];
  const schema = operation?.requestBody?.content['application/json'].schema.$ref?.split('/').at(-1) ?? '';
  const names = [
    ...(operation?.parameters ?? []).map(({ name }) => name),
    ...Object.keys(components.schemas[schema]?.properties ?? {}),
  ];
  const given = [...new URLSearchParams(sent.split('?')[1]).keys(), ...Object.keys(body ?? {})];
  expect(given).toContain('languages');
  return given.filter((name) => !names.includes(name));
}

describe('the operations of the client', () => {
  it('are those of the OpenAPI document, with its methods and paths', () => {
    const documented = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => [operationId, `${method.toUpperCase()} ${path}`]),
    );
    expect(OPERATIONS).toEqual(Object.fromEntries(documented));
  });

  it('are those of /admin as methods of AdminClient', async () => {
    const lists = { organizations: [], keys: [], jobs: [], subscriptions: [], entries: [], next: null };
    const { options, sent } = scripted(json(lists));
    const admin = new AdminClient({ ...options, adminToken: 'token' });
    for (const name of Object.getOwnPropertyNames(AdminClient.prototype)) {
      if (name === 'constructor') continue;
      const method = Reflect.get(admin, name) as (id: string) => Promise<unknown> | AsyncGenerator;
      const result = method.call(admin, 'x');
      await ('next' in result ? result.next() : result);
    }
    const called = sent.map(({ method, path }) => `${method} ${path.replace('/x', '/{id}')}`);
    expect(called.sort()).toEqual(
      Object.values(OPERATIONS)
        .filter((one) => one.includes(' /admin/'))
        .sort(),
    );
  });

  it('send what they are given, encoded', async () => {
    const { client, sent } = clientOf(json(ANSWER));
    const url = 'https://www.youtube.com/@tidewater/videos?view=0';
    const options = { limit: 3, languages: ['en', 'de'], since: 'tw-bread___', requestId: 'mine' };
    expect(await client.transcripts(url, options)).toEqual(ANSWER);
    expect(sent[0]).toMatchObject({
      method: 'GET',
      path: `/channels/${encodeURIComponent(url)}/transcripts?limit=3&since=tw-bread___&languages=en%2Cde`,
    });
    expect(sent[0]?.headers.get('Authorization')).toBe('Bearer ctk_test');
    expect(sent[0]?.headers.get('X-Request-Id')).toBe('mine');
    await client.videos(['a', 'b'], { languages: ['fr'] });
    expect(sent[1]).toMatchObject({ path: '/transcripts', body: { videos: ['a', 'b'], languages: 'fr' } });
  });

  it('send only their own parameters of options that calls share', async () => {
    const texts = { languages: ['en'], match: 'first', include: ['tags'], chunkSeconds: 60 } as const;
    const videos = { kinds: ['video'], limit: 3, since: 'tw-bread___' } as const;
    const options = { ...texts, ...videos, onQuota: 'fail', checkMinutes: 60, start: 1 } as const;
    const calls: [path: string, method: string, (client: ChannelTranscriptsClient) => Promise<unknown>][] = [
      ['/channels/{id}/transcripts', 'get', (client) => client.transcripts('@tidewater', options)],
      ['/playlists/{id}/transcripts', 'get', (client) => client.playlist('PLsaturday', options)],
      ['/transcripts', 'post', (client) => client.videos(['tw-chowder_'], options)],
      ['/videos/{id}/transcript', 'get', (client) => client.video('tw-chowder_', options)],
      ['/videos/{id}/transcript', 'get', (client) => client.videoAs('srt', 'tw-chowder_', options)],
      ['/jobs', 'post', (client) => client.jobs.create('@tidewater', options)],
      ['/subscriptions', 'post', (client) => client.subscriptions.create('@tidewater', options)],
    ];
    for (const [path, method, call] of calls) {
      const { client, sent } = clientOf(json(ANSWER));
      await call(client);
      expect([path, sent.flatMap((request) => undocumented(path, method, request))]).toEqual([path, []]);
    }
  });

  it('are refused before any request when the client cannot send one', () => {
    expect(() => new ChannelTranscriptsClient({ baseUrl: 'localhost:3000', apiKey: 'ctk_x' })).toThrow(
      'baseUrl must be a URL such as https://transcripts.example.com, but is "localhost:3000".',
    );
    expect(() => new AdminClient({ baseUrl: 'http://localhost:3000', adminToken: '' })).toThrow('apiKey is empty');
    const token = 'hunter2' as unknown as TokenProvider;
    expect(() => new ChannelTranscriptsClient({ baseUrl: 'http://localhost:3000', token })).toThrow(
      'token must be a function that returns a token, such as () => provider.accessToken().',
    );
  });

  it('are refused before any request, without showing it, when a key cannot be a header or a URL has a password', () => {
    const faultOf = (create: () => unknown): string => {
      try {
        create();
      } catch (error) {
        return String(error);
      }
      return 'no error';
    };
    const baseUrl = 'http://localhost:3000';
    for (const apiKey of [
      'ctk_hunter2\n',
      'ctk_hunter2\r\nX: y',
      ' ctk_hunter2',
      'ctk_hunter2\u0000',
      'ctk_hunter2ü',
    ]) {
      const faults = [
        faultOf(() => new ChannelTranscriptsClient({ baseUrl, apiKey })),
        faultOf(() => new AdminClient({ baseUrl, adminToken: apiKey })),
        faultOf(() => new ChannelTranscriptsClient({ baseUrl: apiKey.trim(), apiKey: baseUrl })),
        faultOf(() => new ChannelTranscriptsClient({ baseUrl: 'http://me:hunter2@localhost', apiKey: 'ctk_x' })),
      ];
      for (const fault of faults) expect(fault).toMatch(/^TypeError: (?:apiKey contains|baseUrl must be)/);
      expect(faults.join()).not.toContain('hunter2');
    }
  });

  it('say that a service is not ready, as its body does', async () => {
    const { client } = clientOf(json({ status: 'unavailable', stopping: true, dependencies: {} }, 503));
    expect(await client.ready()).toMatchObject({ status: 'unavailable', stopping: true });
  });
});

describe('a call that fails', () => {
  const LOST = {
    name: 'ChannelTranscriptsError',
    ...{ code: 'no_response', status: undefined, retryable: true },
    message: expect.stringMatching(
      /^(?:GET|POST) http:\/\/service\.test\/\S+: fetch failed \(ECONNRESET\)$/,
    ) as unknown,
    cause: lost.cause,
  };

  it('names its address, also when the connection ends within a stream, or something else answers', async () => {
    const { client, sent } = clientOf(lost);
    const message = 'GET http://service.test/channels/%40tidewater/transcripts?limit=2: fetch failed (ECONNRESET)';
    await expect(client.transcripts('@tidewater', { limit: 2 })).rejects.toThrow(message);
    await expect(client.events('@tidewater', { limit: 2 }).next()).rejects.toThrow(message);
    expect(sent).toHaveLength(2);
    const body = new ReadableStream({
      start: (controller) => controller.error(new TypeError('terminated', { cause: lost.cause })),
    });
    const streamed = clientOf(() => new Response(body, { headers: { 'Content-Type': 'application/x-ndjson' } }));
    await expect(streamed.client.events('@tidewater').next()).rejects.toThrow(
      'GET http://service.test/channels/%40tidewater/transcripts: terminated (ECONNRESET)',
    );
    const half = clientOf(() => new Response('{"used":', { headers: { 'Content-Type': 'application/json' } }));
    await expect(half.client.usage()).rejects.toMatchObject({
      code: 'no_response',
      message: expect.stringMatching(/^GET http:\/\/service\.test\/usage: /),
    });
    const ended = clientOf(() => new Response('', { headers: { 'Content-Type': 'application/x-ndjson' } }));
    await expect(ended.client.events('@tidewater').next()).rejects.toMatchObject({ code: 'no_response' });
    const page = clientOf(() => new Response('<h1>Welcome</h1>', { headers: { 'Content-Type': 'text/html' } }));
    await expect(page.client.events('@tidewater').next()).rejects.toMatchObject({
      code: 'unexpected_response',
      retryable: false,
    });
    const proxy = clientOf(PROXY_PAGE);
    await expect(proxy.client.transcripts('@tidewater')).rejects.toThrow(
      'The response to GET http://service.test/channels/%40tidewater/transcripts (status 502) is not from this service.',
    );
  });

  it.each([...CHARGED, ...FREE])(
    'is repeated after a refusal that passes, not before its Retry-After (%s)',
    async (_, call) => {
      const { client, sent, pauses } = clientOf(
        unavailable(7),
        refusal(429, 'rate_limited', true, 1),
        refusal(404, 'x', false),
      );
      await expect(call(client)).rejects.toMatchObject({ status: 404 });
      expect([sent.length, pauses]).toEqual([3, [7, 4]]);
    },
  );

  it.each(CHARGED)('is not repeated when it can be charged and nobody knows whether it was (%s)', async (_, call) => {
    for (const step of [lost, PROXY_PAGE]) {
      const { client, sent } = clientOf(step);
      await expect(call(client)).rejects.toMatchObject(
        step === lost ? LOST : { status: 502, code: 'unexpected_response', retryable: true },
      );
      expect(sent).toHaveLength(1);
    }
    const { client, sent } = clientOf(unavailable(), lost);
    await expect(call(client)).rejects.toMatchObject(LOST);
    expect(sent).toHaveLength(2);
  });

  it.each(FREE)('is repeated when it is free and its answer was lost (%s)', async (_, call) => {
    for (const step of [lost, PROXY_PAGE]) {
      const { client, sent } = clientOf(step);
      await expect(call(client)).rejects.toMatchObject(
        step === lost ? LOST : { status: 502, code: 'unexpected_response', retryable: true },
      );
      expect(sent).toHaveLength(3);
    }
  });

  it.each([429, 500, 502, 503, 504])('can be repeated when a proxy responds with %s', async (status) => {
    const page = (): Response => new Response('<h1>Later</h1>', { status, headers: { 'Retry-After': '7' } });
    const { client, pauses } = clientOf(page, page, page);
    const expected = { status, code: 'unexpected_response', retryable: true, retryAfterSeconds: 7 };
    await expect(client.usage()).rejects.toMatchObject(expected);
    expect(pauses).toEqual([7, 7]);
  });

  it('is left to the caller when the service asks for a long pause, or the call is not to be repeated', async () => {
    const long = clientOf(refusal(503, 'upstream_blocked', true, 600));
    await expect(long.client.transcripts('@tidewater')).rejects.toMatchObject({ retryAfterSeconds: 600 });
    const once = clientOf(unavailable());
    await expect(once.client.usage({ retries: 0 })).rejects.toMatchObject({ code: 'service_unavailable' });
    expect([long.sent.length, once.sent.length]).toEqual([1, 1]);
  });

  it('ends with the reason of its signal, also while it waits', async () => {
    await expect(pause(60, AbortSignal.abort())).rejects.toThrow(/abort/i);
    const leaving = new AbortController();
    const { options } = scripted(() => {
      setTimeout(() => leaving.abort(), 0);
      return unavailable(30);
    });
    const call = new ChannelTranscriptsClient(options).usage({ signal: leaving.signal });
    await expect(call).rejects.toThrow(/abort/i);
  });

  it('is recognized by its code, whose fields then have their type', async () => {
    const details = { limit: 1, used: 1, reserved: 0, required: 3, resetAt: '2026-12-01', scope: 'organization' };
    const error = { code: 'plan_limit_exceeded', message: 'Exceeded.', retryable: false, requestId: 'r', ...details };
    const { client } = clientOf(json({ error }, 402));
    const thrown: unknown = await client.transcripts('@tidewater').catch((reason: unknown) => reason);
    if (!isChannelTranscriptsError(thrown) || thrown.code !== 'plan_limit_exceeded') throw thrown;
    const { required, resetAt }: { required: number; resetAt: string } = thrown.fields;
    expect([required, resetAt, thrown.requestId]).toEqual([3, '2026-12-01', 'r']);
    expect(isChannelTranscriptsError(new Error('other'))).toBe(false);
  });
});

describe('lists', () => {
  it('yield the items of all pages, each once and in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(4), { minLength: 1, maxLength: 6 }), async (sizes) => {
        const pages = sizes.map((size, page) =>
          Array.from({ length: size }, (_, index) => ({ id: `${page}.${index}` })),
        );
        const page = (key: string) => (request: { path: string }) => {
          const after = Number(new URLSearchParams(request.path.split('?')[1]).get('after') ?? 0);
          return json({ [key]: pages[after], next: after + 1 < pages.length ? String(after + 1) : null });
        };
        const { options, wait } = scripted(page('jobs'));
        const ids = [];
        for await (const { id } of new ChannelTranscriptsClient(options, wait).jobs.list()) ids.push(id);
        expect(ids).toEqual(pages.flat().map(({ id }) => id));
        const admin = new AdminClient({ ...scripted(page('organizations')).options, adminToken: 'token' });
        const organizations = [];
        for await (const { id } of admin.organizations()) organizations.push(id);
        expect(organizations).toEqual(ids);
      }),
    );
  });
});
