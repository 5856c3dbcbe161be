import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { startService, type TestService } from '../service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const PATH = '/channels/@tidewater/transcripts';

describe('an organization on the free plan', () => {
  it('is refused with the required plan', async () => {
    const { key } = await service.organization({ plan: 'free' });
    const response = await service.get(PATH, key);
    expect(response.status).toBe(403);
    expect(response.body.error).toEqual({
      code: 'feature_not_in_plan',
      message: 'Your organization is on the Free plan; this operation requires the Pro plan.',
      retryable: false,
      requestId: response.headers['x-request-id'],
      feature: 'channel_transcripts',
      plan: 'free',
      requiredPlan: 'pro',
    });
    expect(service.fakeYoutube.requests.total).toBe(0);
  });

  it('is subject to a changed plan from the next call on', async () => {
    const { key, id } = await service.organization({ plan: 'free' });
    const organizations = service.app.get(OrganizationsService);
    await organizations.change(id, { plan: 'pro' });
    expect((await service.get(PATH, key)).status).toBe(200);
    await organizations.change(id, { plan: 'free' });
    expect((await service.get(PATH, key)).status).toBe(403);
  });
});
