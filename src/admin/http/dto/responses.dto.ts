import { z } from 'zod';
import { page } from '../../../domain/page.js';
import { dateTime } from '../../../domain/schema-fields.js';
import { instanceOf } from '../../../http/routes/response-docs.js';
import { ApiKey, type IssuedKey, type RevokedKey, type RotatedKey } from '../../../organizations/api-key.js';
import { Organization, type DeletedOrganization } from '../../../organizations/organization.entity.js';
import type { EgressesDto } from '../../../platform/egress-states.js';
import { Usage, USAGE_EXAMPLE } from '../../../quota/usage.dto.js';
import { Verification } from '../../../quota/usage-verification.js';
import { UsageReport } from '../../../quota/usage-report.js';
import type { Pruned } from '../../../quota/usage-retention.js';

export const OrganizationsPageDto = page
  .extend({ organizations: z.array(instanceOf(Organization)).describe('The organizations, oldest first.') })
  .meta({ id: 'OrganizationsPage' });
export type OrganizationsPageDto = z.infer<typeof OrganizationsPageDto>;

export const KeysPageDto = page
  .extend({
    keys: z
      .array(instanceOf(ApiKey))
      .describe('The keys and clients, including revoked and expired ones, oldest first.'),
  })
  .meta({ id: 'KeysPage' });
export type KeysPageDto = z.infer<typeof KeysPageDto>;

export const AdminUsageDto = Usage.extend({
  deletedAt: dateTime('When the organization was deleted. Present only for a deleted organization.').exactOptional(),
  verification: Verification.exactOptional().describe(
    'The comparison of each month with its settled calls. Present with `verify=true`.',
  ),
  report: UsageReport.exactOptional().describe('What was charged within some days. Present with `from`, `to` or `by`.'),
}).meta({ id: 'AdminUsage' });
export type AdminUsageDto = z.infer<typeof AdminUsageDto>;

// The examples of the OpenAPI document.

export const ORGANIZATION: Organization = {
  id: 'org_0a1b2c3d4e5f6a7b8c9d0e1f',
  name: 'Acme',
  plan: 'pro',
  monthlyLimit: null,
  externalId: null,
  createdAt: new Date('2026-11-02T09:30:00Z'),
};

export const DELETED_ORGANIZATION: DeletedOrganization = {
  ...ORGANIZATION,
  deletedAt: new Date('2026-11-20T16:00:00Z'),
  revokedKeys: 2,
};

export const KEY: ApiKey = {
  id: 'key_5b1f6a2c9d3e4f7081a2b3c4',
  organizationId: ORGANIZATION.id,
  name: 'server',
  kind: 'key',
  client: null,
  prefix: 'ctk_4fGh2K',
  monthlyLimit: null,
  scopes: ['read', 'write'],
  createdAt: new Date('2026-11-02T09:31:00Z'),
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  replacedBy: null,
};

export const TOKEN_CLIENT: ApiKey = {
  ...KEY,
  ...{ name: 'reports', kind: 'oidc', client: 'reports', prefix: null, lastUsedAt: new Date('2026-11-20T15:59:00Z') },
};

const NEW_KEY_ID = 'key_c4b3a2817f4e3d9c2a6f1b5b';

export const ISSUED_KEY: IssuedKey = { ...KEY, key: 'ctk_4fGh2K…' };

export const ROTATED_KEY: RotatedKey = { ...ISSUED_KEY, id: NEW_KEY_ID, replaced: { ...KEY, replacedBy: NEW_KEY_ID } };

export const REVOKED_KEY: RevokedKey = { ...KEY, revokedAt: new Date('2026-11-20T18:00:00Z'), stillValid: [] };

export const ADMIN_USAGE: AdminUsageDto = { ...USAGE_EXAMPLE, organization: ORGANIZATION.id };

const CALLS = { calls: 12, charged: 120, forfeited: 0 };

export const ALL_USAGE: UsageReport = {
  ...{ from: '2026-10-01', to: '2026-11-01', by: 'organization', charged: CALLS.charged },
  rows: [{ group: ORGANIZATION.id, name: 'Acme', ...CALLS, keys: [{ group: KEY.id, name: KEY.name, ...CALLS }] }],
};

export const PRUNED: Pruned = { retentionMonths: 24, keptFrom: '2024-11', periods: 3, calls: 4120, next: null };

export const EGRESSES: EgressesDto = {
  egresses: [
    {
      name: 'proxy-1',
      resting: false,
      uses: [
        {
          ...{ use: 'video', refusedKind: 'player', pauseSeconds: 42, waiting: 3, running: 0 },
          pace: [{ kind: 'player', perMinute: 12 }],
          lastControl: { at: new Date('2026-11-20T16:00:00Z'), kind: 'player', result: 'refused' },
        },
      ],
    },
  ],
};
