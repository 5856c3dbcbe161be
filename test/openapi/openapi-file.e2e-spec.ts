import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { startService } from '../harness/service.js';

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
