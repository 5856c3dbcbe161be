import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

describe('the admin API without ADMIN_TOKEN', () => {
  it.each([
    ['GET', '/admin'],
    ['GET', '/admin/organizations'],
    ['POST', '/admin/organizations'],
    ['OPTIONS', '/admin/organizations'],
    ['HEAD', '/admin/organizations'],
    ['GET', '/ADMIN/organizations/'],
    ['POST', '/admin/usage/prune'],
    ['GET', '/%61dmin/organizations'],
    ['GET', '/x/../admin/organizations'],
  ])('%s %s responds like an unknown route', async (method, path) => {
    for (const headers of [{}, { Authorization: 'Bearer undefined' }, { Authorization: 'Bearer ' }]) {
      const body = method === 'POST' ? '{"name"' : undefined;
      const response = await service.request(method, path, { ...headers, 'Content-Type': 'application/json' }, body);
      const unknown = await service.request(method, '/nowhere', headers);
      expect([response.status, response.headers.allow]).toEqual([404, undefined]);
      // The path that is meant is never one of administration.
      expect(response.body?.error.message ?? 'Not found.').toMatch(/^Not found\.(?! Did you mean \/admin)/);
      expect(Object.keys(response.headers)).toEqual(Object.keys(unknown.headers));
    }
  });

  it('is not in the served OpenAPI document', async () => {
    const { paths } = (await service.request('GET', '/docs-json')).body as { paths: object };
    expect(Object.keys(paths).filter((path) => path.startsWith('/admin'))).toEqual([]);
  });
});
