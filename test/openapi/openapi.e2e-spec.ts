import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { closed } from './closed-schema.js';
import type { Router } from 'express';
import { EXPOSED_HEADERS } from '../../src/http/routes/limit-headers.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { follow } from '../subscriptions/subscription-requests.js';
import { WEBHOOK_SECRET_KEY } from '../webhooks/receiver.js';

interface Schema {
  $ref?: string;
  [key: string]: unknown;
}
interface Media {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}
interface Operation {
  operationId: string;
  summary: string;
  security?: object[];
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, OneResponse>;
}
interface Parameter {
  name: string;
  required?: boolean;
  description?: string;
  example?: unknown;
  examples?: object;
  schema: Schema;
}
interface OneResponse {
  description: string;
  content?: Record<string, Media>;
  'x-other-content'?: Record<string, Media>;
  headers?: object;
}
interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, unknown> };
}

const JSON_TYPE = { 'Content-Type': 'application/json' };
const ADMIN_TOKEN = 'an-admin-token-of-the-tests-0d3e';

let service: TestService;
let document: Document;
let ajv: Ajv2020;

beforeAll(async () => {
  service = await startService({
    interruptible: true,
    environment: { UPSTREAM_RETRIES: 0, RATE_LIMIT_PER_MINUTE: 1000, ADMIN_TOKEN, WEBHOOK_SECRET_KEY },
  });
  document = (await service.request('GET', '/docs-json')).body as Document;
  ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: 'openapi', components: closed(document.components) });
});
afterAll(() => service.close());

/** The options with which the page at /docs starts Swagger UI. @param onFocus called with the selector of what it focuses */
async function swaggerUi(onFocus?: (selector: string) => void): Promise<{ spec: Document; plugins: unknown[] }> {
  const { text } = await service.request('GET', '/docs/swagger-ui-init.js');
  let options: { spec: Document; plugins: unknown[] } | undefined;
  const start = (given: typeof options): object => {
    options = given;
    return { initOAuth: () => undefined };
  };
  const page = {
    window: { location: { search: '', origin: service.url } } as { onload?: () => void },
    SwaggerUIBundle: Object.assign(start, { presets: {}, plugins: {} }),
    SwaggerUIStandalonePreset: [],
    setTimeout: (done: () => void) => done(),
    document: { querySelector: (selector: string) => ({ focus: () => onFocus?.(selector) }) },
  };
  runInNewContext(text, page);
  page.window.onload?.();
  if (!options) throw new Error('The page did not start Swagger UI.');
  return options;
}

function mismatch(schema: Schema, value: unknown): unknown {
  const validate = ajv.compile(
    JSON.parse(JSON.stringify(closed(schema)).replaceAll('"#/components', '"openapi#/components')) as object,
  );
  return validate(value) ? null : validate.errors;
}

function described(path: string, status: number, method = 'get'): Schema {
  const schema = document.paths[path]?.[method]?.responses[status]?.content?.['application/json']?.schema;
  if (!schema) throw new Error(`${status} of ${path} is not described.`);
  return schema;
}

function operations({ paths } = document): [string, Operation][] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
}

/** The successful responses whose media type the caller chooses. */
function chosen(): [path: string, method: string, response: OneResponse][] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]): [string, string, OneResponse][] =>
      responses[200]?.['x-other-content'] ? [[path, method, responses[200]]] : [],
    ),
  );
}

const TRANSCRIPTS = '/channels/{id}/transcripts';

interface Example {
  videoId?: string;
  metadata?: object;
  transcript?: Record<string, unknown[]>;
  playlist?: { id: string };
  results?: unknown;
}

/** The objects with a property within the examples of the document. */
function examplesWith(value: unknown, property: string, isExample = false): Example[] {
  if (typeof value !== 'object' || value === null) return [];
  const within = Object.entries(value).flatMap(([name, each]) =>
    examplesWith(each, property, isExample || name === 'example' || name === 'examples'),
  );
  return isExample && property in value ? [value, ...within] : within;
}

describe('the OpenAPI document', () => {
  it('lists exactly the routes that are served', () => {
    const { router } = service.app.getHttpAdapter().getInstance() as { router: Router };
    const isPage = (path: string): boolean => path.startsWith('/docs') || ['/admin/ui', '/library/ui'].includes(path);
    const routes = router.stack.flatMap(({ route }) => (route && !isPage(route.path) ? [route] : []));
    const served = routes.flatMap(({ path, stack }) =>
      stack.map(({ method }) => `${method.toUpperCase()} ${path.replace(/[:*](\w+)/g, '{$1}')}`),
    );
    const listed = operations().map(([name]) => name);
    expect([...new Set(served)].sort()).toEqual(listed.sort());
  });

  it('describes the rate limit and quota headers where they are sent', () => {
    const rate = ['RateLimit-Policy', 'RateLimit', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
    const quota = ['X-Quota-Limit', 'X-Quota-Remaining', 'X-Quota-Reset'];
    const headers = (path: string, status: number): string[] =>
      Object.keys(document.paths[path]?.['get']?.responses[status]?.headers ?? {});
    expect(headers(TRANSCRIPTS, 200)).toEqual(expect.arrayContaining([...rate, ...quota]));
    expect(headers(TRANSCRIPTS, 402)).toEqual(expect.arrayContaining([...rate, ...quota]));
    expect(headers(TRANSCRIPTS, 429)).toEqual(expect.arrayContaining(['Retry-After', ...rate]));
    expect(headers('/usage', 200)).toEqual(['X-Request-Id', ...rate]);
    expect(headers('/health/live', 200)).toEqual(['X-Request-Id']);
    expect(headers('/usage', 429)).toEqual(expect.arrayContaining(['Retry-After', ...rate]));
    expect(headers(TRANSCRIPTS, 502)).toEqual(expect.arrayContaining(['Retry-After', ...rate]));
    for (const [name, { security, responses }] of operations()) {
      if (!JSON.stringify(security).includes('apiKey')) continue;
      for (const [status, response] of Object.entries(responses)) {
        const sent = ['401', '405'].includes(status) ? [] : rate;
        const listed = Object.keys(response.headers ?? {}).filter((header) => rate.includes(header));
        expect([name, status, listed]).toEqual([name, status, sent]);
      }
    }
  });

  it('describes every field, parameter and response, with an example for each error that fits its schema', () => {
    for (const [name, operation] of operations()) {
      expect([name, operation.operationId, operation.summary]).not.toContain(undefined);
      for (const parameter of operation.parameters ?? []) {
        expect([name, parameter.name, typeof parameter.description]).toEqual([name, parameter.name, 'string']);
      }
      for (const [status, response] of Object.entries(operation.responses)) {
        expect([name, status, response.description.length > 3]).toEqual([name, status, true]);
        for (const media of Object.values({ ...response.content, ...response['x-other-content'] })) {
          const examples = [
            ...Object.values(media.examples ?? {}),
            ...(media.example ? [{ value: media.example }] : []),
          ];
          if (/transcripts|\/admin\/|\/jobs|\/subscriptions|\/webhooks/.test(name))
            expect([name, status, examples.length]).not.toContain(0);
          for (const example of examples)
            expect([name, status, mismatch(media.schema, example.value)]).toEqual([name, status, null]);
        }
      }
    }
    for (const [schemaName, schema] of Object.entries(document.components.schemas)) {
      for (const [property, field] of Object.entries((schema['properties'] ?? {}) as Record<string, Schema>)) {
        const text = JSON.stringify(field);
        expect([schemaName, property, text.includes('"description"')]).toEqual([schemaName, property, true]);
      }
    }
  });

  it('names no file, which callers do not have', () => {
    expect(JSON.stringify(document)).not.toMatch(/\w\.md\b/);
  });

  it('accepts null for every field that it calls nullable', () => {
    const refusing: Schema[] = [];
    const visit = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      if ('nullable' in value && mismatch(value, null) !== null) refusing.push(value);
      Object.values(value).forEach(visit);
    };
    visit([document.components.schemas, document.paths]);
    expect(refusing).toEqual([]);
  });

  it('has one media type in the content of a response, so that generated clients have one type for it', () => {
    for (const [name, { responses }] of operations()) {
      for (const [status, { content = {}, description, ...response }] of Object.entries(responses)) {
        expect([name, status, Object.keys(content).slice(1)]).toEqual([name, status, []]);
        for (const type of Object.keys(response['x-other-content'] ?? {})) expect(description).toContain(`${type}\``);
      }
    }
  });

  it('has every media type in the content for Swagger UI, where one is chosen', async () => {
    const { spec: swaggerDoc } = await swaggerUi();
    const shown = (path: string, method: string) => swaggerDoc.paths[path]?.[method]?.responses['200'];
    for (const [path, method, response] of chosen()) {
      expect(shown(path, method)?.content).toEqual({ ...response.content, ...response['x-other-content'] });
      expect(shown(path, method)).not.toHaveProperty('x-other-content');
    }
  });

  it('has no optional parameter or header with a value that Swagger UI or another tool would send', async () => {
    const { spec } = await swaggerUi();
    const filled = ({ example, examples, schema }: Parameter): unknown => example ?? examples ?? schema['example'];
    const found = operations().flatMap(([name, { parameters = [] }]) =>
      parameters.filter((one) => !one.required && filled(one) !== undefined).map((one) => `${name} ${one.name}`),
    );
    expect(found).toEqual([]);
    const shown = operations(spec).flatMap(([name, { parameters = [] }]) =>
      parameters.map((one) => ({ of: name, ...one })),
    );
    expect(shown.filter((one) => !one.required && (filled(one) ?? one.schema['default']) !== undefined)).toEqual([]);
    const limit = shown.find((one) => one.name === 'limit');
    expect(limit?.description).toMatch(/ Default: `25`\.$/);
    expect(shown.length).toBeGreaterThan(50);
  });

  it('has an example for each body that leaves out what is optional', async () => {
    const { spec } = await swaggerUi();
    const bodies = operations(spec).flatMap(([name, { requestBody }]) =>
      Object.values(requestBody?.content ?? {}).map((media) => ({ name, ...media })),
    );
    expect(bodies.length).toBeGreaterThan(8);
    // One message of JSON-RPC, which says itself what it needs.
    for (const { name, schema, example, examples } of bodies.filter((body) => body.name !== 'POST /mcp')) {
      const sent = examples ? Object.values(examples).map(({ value }) => value) : [example];
      const { required = [] } = document.components.schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? {};
      for (const value of sent) {
        expect([name, mismatch(schema, value)]).toEqual([name, null]);
        // A job has one source, of which each example shows another.
        const fields = name === 'POST /jobs' ? [expect.stringMatching(/^(?:channel|playlist|videos)$/)] : required;
        expect([name, Object.keys(value as object)]).toEqual([name, fields]);
      }
    }
  });

  it('begins with what the service does and the first call, and links to the rules', async () => {
    const { description } = (document as unknown as { info: { description: string } }).info;
    expect(description).toMatch(/^Returns the transcripts [^]*\n {4}curl -H "Authorization: Bearer <API_KEY>" /);
    expect(description).not.toMatch(/percent-encoding|X-Request-Id/);
    const { text } = await service.request('GET', '/docs/errors');
    for (const [, anchor] of description.matchAll(/\]\(\/docs\/errors#([^)]+)\)/g))
      expect(text).toContain(` id="${anchor}"`);
  });

  it('has the API key as its first scheme, and only access tokens have the format of one', () => {
    const schemes = (document as { components?: { securitySchemes?: Record<string, object> } }).components
      ?.securitySchemes;
    const { accessToken, ...others } = schemes ?? {};
    expect(Object.keys(others)).toEqual(['apiKey', 'adminToken', 'metricsToken']);
    expect(JSON.stringify(others)).not.toContain('JWT');
    expect(accessToken).toMatchObject({ type: 'http', scheme: 'bearer', bearerFormat: 'JWT' });
  });

  it('is shown by a page whose dialog for keys gives the focus to the first one', async () => {
    const calls: string[] = [];
    const { plugins } = await swaggerUi((selector) => calls.push(selector));
    const plugin = plugins.find((one) => typeof one === 'object') as {
      statePlugins: { auth: { wrapActions: { showDefinitions(show: () => void): (schemes: unknown) => void } } };
    };
    plugin.statePlugins.auth.wrapActions.showDefinitions(() => void calls.push('shown'))({});
    expect(calls).toEqual(['shown', '.auth-container input']);
  });

  it('requires the Bearer scheme for the operation and not for the probes', () => {
    expect(document.components.securitySchemes).toMatchObject({
      apiKey: { type: 'http', scheme: 'bearer', bearerFormat: 'API key' },
    });
    expect(document.paths[TRANSCRIPTS]?.['get']?.security).toEqual([{ apiKey: [] }, { accessToken: [] }]);
    expect(document.paths['/health/live']?.['get']?.security).toEqual([]);
  });

  it('has a separate scheme and tag for the admin routes, all of which require the admin token or an access token', () => {
    expect(document.components.securitySchemes).toMatchObject({ adminToken: { type: 'http', scheme: 'bearer' } });
    for (const [name, { security, tags, responses }] of operations().filter(([of]) => of.includes('/admin/'))) {
      expect([name, security, tags]).toEqual([name, [{ adminToken: [] }, { accessToken: [] }], ['admin']]);
      const common = ['400', '401', '403', '404', '405', '429', '500', '503'];
      const expected = [...common, ...(/^P/.test(name) ? ['413', '415'] : [])];
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(expected));
      expect(Object.keys(responses)).toHaveLength(
        expected.length + (/rotate|cancel|unblock|^P.* \/admin\/organizations(?:\/\{id\})?$/.test(name) ? 2 : 1),
      );
    }
  });
});

describe('a response matches the document', () => {
  async function expectMatch(
    status: number,
    path: string,
    request: () => Promise<ServiceResponse>,
    method = 'get',
  ): Promise<ServiceResponse> {
    const response = await request();
    expect([response.status, mismatch(described(path, status, method), response.body)]).toEqual([status, null]);
    const listed = Object.keys(document.paths[path]?.[method]?.responses[status]?.headers ?? {});
    const sent = ['Allow', ...EXPOSED_HEADERS].filter((name) => response.headers[name.toLowerCase()] !== undefined);
    expect(listed).toEqual(expect.arrayContaining(sent));
    return response;
  }

  interface Sent {
    as?: string;
    body?: unknown;
    headers?: Record<string, string>;
  }

  /** Sends requests with a key, or with another token when one is given. */
  function matcher(key: string) {
    return (
      status: number,
      method: string,
      template: string,
      path: string,
      { as = key, body, headers = {} }: Sent = {},
    ): Promise<ServiceResponse> => {
      const sent = { Authorization: `Bearer ${as}`, ...(body !== undefined && JSON_TYPE), ...headers };
      const text = body === undefined ? undefined : JSON.stringify(body);
      return expectMatch(status, template, () => service.request(method, path, sent, text), method.toLowerCase());
    };
  }

  it('for the other reads', async () => {
    const { key } = await service.organization();
    const free = await service.organization({ plan: 'free' });
    const match = matcher(key);
    const [video, playlist, uploads] = [
      '/videos/{id}/transcript',
      '/playlists/{id}/transcripts',
      '/channels/{id}/uploads',
    ] as const;
    const asFree = { as: free.key };
    await match(200, 'GET', video, '/videos/hl-dinghy__/transcript', asFree);
    for (const id of ['short', 'hl-silent__', 'hl-private_', 'no-such-vid'])
      await match(404, 'GET', video, `/videos/${id}/transcript`);
    await match(409, 'GET', video, '/videos/hl-tidecam_/transcript');
    await match(200, 'GET', uploads, '/channels/@harbourlight/uploads', asFree);
    await match(200, 'GET', playlist, '/playlists/UUharbourlight__________/transcripts?limit=100');
    await match(400, 'GET', playlist, '/playlists/WL/transcripts');
    const [list, videos] = ['/transcripts', ['hl-dinghy__', 'hl-dinghy__', 'no-such-vid']];
    await match(200, 'POST', list, list, { body: { videos } });
    await match(403, 'POST', list, list, { body: { videos }, ...asFree });
    await expectMatch(405, list, () => service.get(list, key), 'post');
  });

  it('in each media type that the document names beside JSON', async () => {
    const { key } = await service.organization();
    const job = (
      await service.request(
        'POST',
        '/jobs',
        { Authorization: `Bearer ${key}`, ...JSON_TYPE },
        '{"channel":"@tidewater","limit":1}',
      )
    ).body as { id: string };
    await until(async () => (await service.get(`/jobs/${job.id}`, key)).body.state === 'completed');
    const subscription = await follow(service, key, { channel: '@tidewater' });
    const requests: Record<string, [path: string, body?: string]> = {
      [TRANSCRIPTS]: ['/channels/@tidewater/transcripts?limit=1'],
      '/playlists/{id}/transcripts': ['/playlists/UUharbourlight__________/transcripts?limit=1'],
      '/videos/{id}/transcript': ['/videos/hl-dinghy__/transcript'],
      '/transcripts': ['/transcripts', '{"videos":["hl-dinghy__"]}'],
      '/jobs/{id}/results': [`/jobs/${job.id}/results`],
      '/subscriptions/{id}/results': [`/subscriptions/${subscription.id}/results`],
      '/feed': ['/feed'],
      '/library/videos': ['/library/videos?as=documents'],
      '/mcp': ['/mcp', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
      '/admin/usage': ['/admin/usage'],
    };
    expect(
      chosen()
        .map(([path]) => path)
        .sort(),
    ).toEqual(Object.keys(requests).sort());
    for (const [path, method, response] of chosen()) {
      for (const type of Object.keys(response['x-other-content'] ?? {})) {
        const [target = '', body] = requests[path] ?? [];
        // The revisions of MCP that have events require that JSON is accepted as well.
        const accept = type === 'text/event-stream' ? `application/json, ${type}` : type;
        const credential = path.startsWith('/admin') ? ADMIN_TOKEN : key;
        const headers = { Authorization: `Bearer ${credential}`, Accept: accept, ...(body !== undefined && JSON_TYPE) };
        const sent = await service.request(method.toUpperCase(), target, headers, body);
        expect([path, sent.status, sent.headers['content-type']?.split(';')[0]]).toEqual([path, 200, type]);
      }
    }
  });

  it('in its examples, whose texts are those of the demo', async () => {
    const { key } = await service.organization();
    const headers = { Authorization: `Bearer ${key}`, ...JSON_TYPE };
    const entries = examplesWith(document.paths, 'transcript');
    expect(entries.map(({ videoId }) => videoId)).toEqual(expect.arrayContaining(['hl-dinghy__', 'hl-silent__']));
    for (const { videoId, metadata, transcript } of entries) {
      const body = JSON.stringify({ videos: [videoId] });
      const [entry] = (await service.request('POST', '/transcripts', headers, body)).body.results as any[];
      const { title, url, durationSeconds, viewCount, captionTracks } = entry.metadata;
      expect(metadata).toMatchObject({ title, url, durationSeconds, viewCount, captionTracks });
      for (const [language, segments] of Object.entries(transcript ?? {}))
        expect(segments).toEqual(entry.transcript[language].slice(0, segments.length));
    }
    const ofPlaylists = examplesWith(document.paths, 'playlist').filter(({ results }) => results);
    expect(ofPlaylists).toHaveLength(1);
    for (const { playlist } of ofPlaylists)
      expect((await service.get(`/playlists/${playlist?.id}/transcripts`, key)).body.playlist).toEqual(playlist);
    const [, , texts] = chosen().find(([path]) => path === '/videos/{id}/transcript') ?? [];
    for (const [type, { example }] of Object.entries(texts?.['x-other-content'] ?? {})) {
      const { text } = await service.get('/videos/hl-dinghy__/transcript', key, { Accept: type });
      expect(text.slice(0, String(example).length)).toBe(example);
    }
  });

  it('for jobs', async () => {
    const { key } = await service.organization();
    const free = await service.organization({ plan: 'free' });
    const match = matcher(key);
    const [jobs, one] = ['/jobs', '/jobs/{id}'];
    const body = { channel: '@tidewater', limit: 3 };
    const headers = { 'Idempotency-Key': 'a' };
    const { id } = (await match(202, 'POST', jobs, jobs, { body, headers })).body as { id: string };
    await match(409, 'POST', jobs, jobs, { body: { channel: '@harbourlight' }, headers });
    await match(400, 'POST', jobs, jobs, { body: { limit: 0 } });
    await match(403, 'POST', jobs, jobs, { body, as: free.key });
    await match(404, 'POST', jobs, jobs, { body: { channel: 'UC' } });
    await match(413, 'POST', jobs, jobs, { body: { channel: 'x'.repeat(2 ** 20) } });
    await match(415, 'POST', jobs, jobs, { body, headers: { 'Content-Type': 'text/plain' } });
    await expectMatch(405, jobs, () => service.request('PUT', jobs));
    const mine = `/jobs/${id}`;
    await until(async () => (await service.get(mine, key)).body.state === 'completed');
    await match(200, 'GET', one, mine);
    await match(404, 'GET', one, '/jobs/job_x');
    await match(200, 'GET', jobs, `${jobs}?limit=1`);
    await match(200, 'GET', `${one}/results`, `${mine}/results`);
    await match(409, 'POST', `${one}/cancel`, `${mine}/cancel`);
    await match(409, 'POST', `${one}/resume`, `${mine}/resume`);
    await service.query(`UPDATE jobs SET expires_at = clock_now() - interval '1 second' WHERE id = '${id}'`);
    await match(410, 'GET', `${one}/results`, `${mine}/results`);
    await match(404, 'DELETE', one, '/jobs/job_x');
    expect((await service.request('DELETE', mine, { Authorization: `Bearer ${key}` })).status).toBe(204);
  });

  it('for subscriptions', async () => {
    const { key } = await service.organization();
    const free = await service.organization({ plan: 'free' });
    const match = matcher(key);
    const [all, one] = ['/subscriptions', '/subscriptions/{id}'];
    const body = { channel: '@tidewater', start: 3 };
    const headers = { 'Idempotency-Key': 'a' };
    const { id } = (await match(201, 'POST', all, all, { body, headers })).body as { id: string };
    await match(409, 'POST', all, all, { body: { channel: '@harbourlight' }, headers });
    await match(400, 'POST', all, all, { body: { checkMinutes: 0 } });
    await match(403, 'POST', all, all, { body, as: free.key });
    await match(404, 'POST', all, all, { body: { channel: 'UC' } });
    const mine = `/subscriptions/${id}`;
    const results = `${mine}/results`;
    await until(async () => (await service.get(results, key)).body.results.length === 3);
    await match(200, 'GET', one, mine);
    await match(404, 'GET', one, '/subscriptions/sub_x');
    await match(200, 'GET', all, `${all}?limit=1`);
    await match(200, 'GET', `${one}/results`, `${results}?limit=2`);
    await match(410, 'GET', `${one}/results`, `${results}?after=9`);
    await match(200, 'GET', '/feed', '/feed?limit=2');
    await match(410, 'GET', '/feed', '/feed?after=1.AAAAAAAA');
    await match(202, 'POST', `${one}/check`, `${mine}/check`);
    await match(429, 'POST', `${one}/check`, `${mine}/check`);
    await match(200, 'PATCH', one, mine, { body: { state: 'paused', checkMinutes: 20, languages: null } });
    await match(400, 'PATCH', one, mine, { body: {} });
    await match(409, 'POST', `${one}/check`, `${mine}/check`);
    await service.query(`DELETE FROM job_videos WHERE job_id = '${id}' AND sequence <= 2`);
    await service.query(`UPDATE jobs SET expired_sequence = 2 WHERE id = '${id}'`);
    await match(410, 'GET', `${one}/results`, `${results}?after=1`);
    await match(404, 'DELETE', one, '/subscriptions/sub_x');
    expect((await service.request('DELETE', mine, { Authorization: `Bearer ${key}` })).status).toBe(204);
  });

  it('for the library', async () => {
    const { key } = await service.organization();
    const free = await service.organization({ plan: 'free' });
    const match = matcher(key);
    const [found, all, one] = ['/library/search', '/library/videos', '/library/videos/{id}'];
    const body = { videos: ['hl-dinghy__', 'hl-keeper__'], keep: true };
    const { id } = (await match(202, 'POST', '/jobs', '/jobs', { body })).body as { id: string };
    await until(async () => (await service.get(`/jobs/${id}`, key)).body.state === 'completed');
    await match(200, 'GET', found, `${found}?q=the&limit=1`);
    await match(400, 'GET', found, `${found}?q=-the`);
    await match(403, 'GET', found, `${found}?q=the`, { as: free.key });
    await match(200, 'GET', all, `${all}?limit=1`);
    await match(400, 'GET', all, `${all}?after=x`);
    await match(200, 'GET', '/usage', '/usage');
    await match(200, 'DELETE', '/library', '/library?channel=UCharbourlight__________');
    await match(400, 'DELETE', '/library', '/library');
    await match(404, 'DELETE', one, `${all}/hl-dinghy__`);
  });

  it('for webhooks', async () => {
    const { key } = await service.organization();
    const free = await service.organization({ plan: 'free' });
    const match = matcher(key);
    const all = '/webhooks';
    // An address, which needs no name server; nothing is sent to it.
    const body = { url: 'https://93.184.215.14/hook' };
    const { id } = (await match(201, 'POST', all, all, { body })).body as { id: string };
    await match(201, 'POST', all, all, { body: { ...body, events: ['job.failed'] } });
    await match(400, 'POST', all, all, { body: { url: 'https://127.0.0.1/' } });
    await match(403, 'POST', all, all, { body, as: free.key });
    for (let count = 2; count < 10; count += 1) await match(201, 'POST', all, all, { body });
    await match(409, 'POST', all, all, { body });
    await match(200, 'GET', all, all);
    await service.query(`INSERT INTO webhook_deliveries (webhook_id, type, data, created_at, next_attempt_at)
      VALUES ('${id}', 'job.failed', '{}', clock_now(), clock_now() + interval '1 hour')`);
    await match(200, 'GET', `${all}/{id}/deliveries`, `${all}/${id}/deliveries`);
    await match(200, 'PATCH', `${all}/{id}`, `${all}/${id}`, {
      body: { labels: { user: '42' }, authorization: 'Bearer x' },
    });
    await match(400, 'PATCH', `${all}/{id}`, `${all}/${id}`, { body: {} });
    await match(202, 'POST', `${all}/{id}/replay`, `${all}/${id}/replay`, { body: { after: '0' } });
    await match(410, 'POST', `${all}/{id}/replay`, `${all}/${id}/replay`, { body: { after: '7.AAAAAAAA' } });
    const [delivery] = await service.query(`SELECT id FROM webhook_deliveries WHERE webhook_id = '${id}'`);
    const one = `${all}/{id}/deliveries/{deliveryId}/retry`;
    const retry = `${all}/${id}/deliveries/${String(delivery?.['id'])}/retry`;
    await match(409, 'POST', one, retry);
    await service.query(
      `UPDATE webhook_deliveries SET state = 'failed', next_attempt_at = NULL WHERE webhook_id = '${id}'`,
    );
    await match(202, 'POST', one, retry);
    await match(404, 'POST', one, `${all}/${id}/deliveries/x/retry`);
    await match(200, 'POST', `${all}/{id}/rotate`, `${all}/${id}/rotate`);
    await match(404, 'POST', `${all}/{id}/test`, `${all}/x/test`);
    await match(404, 'DELETE', `${all}/{id}`, `${all}/x`);
    expect((await service.request('DELETE', `${all}/${id}`, { Authorization: `Bearer ${key}` })).status).toBe(204);
  });

  it('for every status of the operation', async () => {
    const { key } = await service.organization();
    const free = await service.organization({ plan: 'free' });
    const poor = await service.organization({ monthlyLimit: 0 });
    const get =
      (path: string, as = key) =>
      () =>
        service.get(path, as);
    await expectMatch(200, TRANSCRIPTS, get('/channels/@harbourlight/transcripts?limit=100'));
    await expectMatch(200, TRANSCRIPTS, get('/channels/@harbourlight/transcripts?limit=100'));
    await expectMatch(400, TRANSCRIPTS, get('/channels/@tidewater/transcripts?limit=0&page=1'));
    await expectMatch(401, TRANSCRIPTS, () => service.request('GET', '/channels/@tidewater/transcripts'));
    await expectMatch(401, TRANSCRIPTS, get('/channels/@tidewater/transcripts', 'wrong'));
    await expectMatch(402, TRANSCRIPTS, get('/channels/@fogsignalradio/transcripts', poor.key));
    await expectMatch(403, TRANSCRIPTS, get('/channels/@tidewater/transcripts', free.key));
    await expectMatch(404, TRANSCRIPTS, get('/channels/@no-such-channel/transcripts'));
    await expectMatch(405, TRANSCRIPTS, () => service.request('POST', '/channels/@tidewater/transcripts'));
    service.fakeYoutube.setFaults({ kind: 'captcha' });
    await expectMatch(502, TRANSCRIPTS, get('/channels/@2-videos-no-3/transcripts'));
    service.link.cut();
    await expectMatch(503, TRANSCRIPTS, get('/channels/@tidewater/transcripts'));
    await until(async () => (await service.request('GET', '/health/ready')).status === 503);
    await expectMatch(503, '/health/ready', () => service.request('GET', '/health/ready'));
    service.link.join();
  });

  it('for the other routes', async () => {
    const { key } = await service.organization({ plan: 'free' });
    await expectMatch(200, '/usage', () => service.get('/usage', key));
    await expectMatch(401, '/usage', () => service.request('GET', '/usage'));
    await expectMatch(400, '/usage', () => service.get('/usage?month=5', key));
    const failing = () => service.request('GET', '/usage');
    for (let failures = 0; failures < 20; failures += 1) await failing();
    await expectMatch(429, '/usage', failing);
    await expectMatch(429, TRANSCRIPTS, () => service.request('GET', '/channels/@tidewater/transcripts'));
    await expectMatch(200, '/health/live', () => service.request('GET', '/health/live'));
    await until(async () => (await service.request('GET', '/health/ready')).status === 200);
    await expectMatch(200, '/health/ready', () => service.request('GET', '/health/ready'));
  });

  it('for the admin routes', async () => {
    const match = matcher(ADMIN_TOKEN);
    const all = '/admin/organizations';
    const one = `${all}/{id}`;
    const { id } = (await match(201, 'POST', all, all, { body: { name: 'A', plan: 'pro', monthlyLimit: 5 } })).body as {
      id: string;
    };
    const mine = `${all}/${id}`;
    await match(400, 'POST', all, all, { body: { name: 'A', plan: 'gold' } });
    await match(200, 'GET', all, `${all}?limit=1`);
    await match(200, 'GET', one, mine);
    await match(404, 'GET', one, `${all}/org_none`);
    await match(200, 'PATCH', one, mine, { body: { monthlyLimit: null } });
    const key = (await match(201, 'POST', `${one}/keys`, `${mine}/keys`, { body: { expiresInDays: 9 } })).body as {
      id: string;
    };
    await match(201, 'POST', '/admin/keys/{id}/rotate', `/admin/keys/${key.id}/rotate`);
    await match(409, 'POST', '/admin/keys/{id}/rotate', `/admin/keys/${key.id}/rotate`);
    await match(200, 'DELETE', '/admin/keys/{id}', `/admin/keys/${key.id}`);
    await match(200, 'GET', `${one}/keys`, `${mine}/keys`);
    await match(200, 'GET', `${one}/usage`, `${mine}/usage`);
    await match(200, 'GET', `${one}/usage`, `${mine}/usage?verify=true&by=day`);
    await match(200, 'GET', '/admin/usage', '/admin/usage?from=2026-10-01');
    await match(400, 'GET', '/admin/usage', '/admin/usage?from=x');
    await match(200, 'POST', '/admin/usage/prune', '/admin/usage/prune');
    await match(200, 'GET', '/admin/audit', `/admin/audit?organization=${id}`);
    await match(404, 'GET', '/admin/audit', '/admin/audit?organization=org_none');
    await match(200, 'GET', '/admin/egresses', '/admin/egresses');
    await match(200, 'DELETE', one, mine);
    await expectMatch(401, one, () => service.request('GET', mine));
    await expectMatch(405, one, () => service.request('PUT', mine));
  });
});
