import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { describe, expect, it, afterAll, beforeAll } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';

const PROJECT = join(import.meta.dirname, '../..');

const text = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');

describe('the OpenAPI document in the repository', () => {
  it('equals the served document; `npm run openapi` updates it', async () => {
    const oidc = { OIDC_ISSUER: 'https://id.example.com', OIDC_AUDIENCE: 'channel-transcripts' };
    const service = await startService({ environment: { ADMIN_TOKEN: 'an-admin-token-of-the-tests-5a0b', ...oidc } });
    try {
      const served: unknown = (await service.request('GET', '/docs-json')).body;
      expect(JSON.parse(text('tools/openapi/openapi.json'))).toEqual(served);
    } finally {
      await service.close();
    }
  });
});

describe('the page about errors', () => {
  let service: TestService;
  let page: string;
  let anchors: string[];

  beforeAll(async () => {
    service = await startService();
    page = (await service.request('GET', '/docs/errors')).text;
    anchors = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id);
  });
  afterAll(() => service.close());

  it('has an anchor for a code, to which `docs` of an error leads', async () => {
    expect(anchors).toContain('unauthorized');
    const { error } = (await service.request('GET', '/usage')).body as { error: { docs: string } };
    expect(error.docs).toBe('/docs/errors#unauthorized');
    expect((await service.request('GET', error.docs.split('#')[0] ?? '')).status).toBe(200);
  });

  it('has no section twice, and no link that leads nowhere', async () => {
    expect(anchors).toEqual([...new Set(anchors)]);
    const links = [...page.matchAll(/ href="([^"]+)"/g)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(10);
    for (const link of links) {
      if (link.startsWith('#')) expect(anchors).toContain(link.slice(1));
      else
        expect((await service.request('GET', new URL(link, `${service.url}/docs/errors`).pathname)).status).toBe(200);
    }
  });

  it('names no file, which callers do not have, and no raw Markdown', () => {
    expect(page).not.toMatch(/\.md|docs\/(?!errors)|\]\(/);
  });

  it('is HTML whose policy allows its one style and nothing else', async () => {
    const { status, headers } = await service.request('HEAD', '/docs/errors');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const styles = [...page.matchAll(/<style>([^]*?)<\/style>/g)];
    expect(styles).toHaveLength(1);
    const hash = createHash('sha256')
      .update(styles[0]?.[1] ?? '')
      .digest('base64');
    const none = "default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'";
    expect(headers['content-security-policy']).toBe(`${none};style-src 'sha256-${hash}'`);
    expect(page).not.toMatch(/<script|<img|<link| style=| on[a-z]+=/);
  });

  it('is read only', async () => {
    expect((await service.request('POST', '/docs/errors')).status).toBe(405);
    expect((await service.request('GET', '/docs/errors/')).status).toBe(404);
  });
});
