import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { dateTime, PageDto } from '../../../http/routes/response-docs.js';
import { ApiKey, type IssuedKey, type RevokedKey, type RotatedKey } from '../../../organizations/api-key.js';
import { Organization, type DeletedOrganization } from '../../../organizations/organization.entity.js';
import { Usage } from '../../../quota/usage.dto.js';
import { Verification } from '../../../quota/usage-verification.js';
import { UsageReport } from '../../../quota/usage-report.js';
import type { Pruned } from '../../../quota/usage-retention.js';

@ApiSchema({ name: 'OrganizationsPage' })
export class OrganizationsPageDto extends PageDto {
  @ApiProperty({ type: [Organization], description: 'The organizations, oldest first.' })
  organizations: Organization[];
}

@ApiSchema({ name: 'KeysPage' })
export class KeysPageDto extends PageDto {
  @ApiProperty({
    type: [ApiKey],
    description: 'The keys and clients, including revoked and expired ones, oldest first.',
  })
  keys: ApiKey[];
}

@ApiSchema({ name: 'AdminUsage' })
export class AdminUsageDto extends Usage {
  @ApiPropertyOptional(dateTime('When the organization was deleted. Present only for a deleted organization.'))
  override deletedAt?: string;

  @ApiPropertyOptional({
    type: Verification,
    description: 'The comparison of each month with its settled calls. Present with `verify=true`.',
  })
  verification?: Verification;

  @ApiPropertyOptional({
    type: UsageReport,
    description: 'What was charged within some days. Present with `from`, `to` or `by`.',
  })
  report?: UsageReport;
}

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

export const ADMIN_USAGE: AdminUsageDto = {
  organization: ORGANIZATION.id,
  plan: 'pro',
  period: { start: '2026-11-01T00:00:00.000Z', end: '2026-12-01T00:00:00.000Z' },
  ...{ limit: 5000, used: 120, reserved: 25, remaining: 4855 },
  history: [{ period: '2026-11', used: 120 }],
};

const CALLS = { calls: 12, charged: 120, forfeited: 0 };

export const ALL_USAGE: UsageReport = {
  ...{ from: '2026-10-01', to: '2026-11-01', by: 'organization', charged: CALLS.charged },
  rows: [{ group: ORGANIZATION.id, name: 'Acme', ...CALLS, keys: [{ group: KEY.id, name: KEY.name, ...CALLS }] }],
};

export const PRUNED: Pruned = { retentionMonths: 24, keptFrom: '2024-11', periods: 3, calls: 4120, next: null };
