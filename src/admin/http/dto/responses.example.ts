import type {
  DeletedOrganizationDocument,
  IssuedKeyDocument,
  KeyDocument,
  OrganizationDocument,
  PrunedDocument,
  RevokedKeyDocument,
  RotatedKeyDocument,
  UsageDocument,
} from '../../admin-views.js';

/** What the routes under `/admin` answer, in the OpenAPI document. */
export const ORGANIZATION: OrganizationDocument = {
  id: 'org_0a1b2c3d4e5f6a7b8c9d0e1f',
  name: 'Acme',
  plan: 'pro',
  monthlyLimit: null,
  createdAt: '2026-11-02T09:30:00.000Z',
};

export const DELETED_ORGANIZATION: DeletedOrganizationDocument = {
  ...ORGANIZATION,
  deletedAt: '2026-11-20T16:00:00.000Z',
  revokedKeys: 2,
};

export const KEY: KeyDocument = {
  id: 'key_5b1f6a2c9d3e4f7081a2b3c4',
  organizationId: ORGANIZATION.id,
  name: 'server',
  prefix: 'ctk_4fGh2K',
  createdAt: '2026-11-02T09:31:00.000Z',
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  replacedBy: null,
};

export const ISSUED_KEY: IssuedKeyDocument = { ...KEY, key: 'ctk_4fGh2K…' };

export const ROTATED_KEY: RotatedKeyDocument = {
  ...ISSUED_KEY,
  id: 'key_c4b3a2817f4e3d9c2a6f1b5b',
  prefix: 'ctk_9sTu7V',
  key: 'ctk_9sTu7V…',
  createdAt: '2026-11-20T16:00:00.000Z',
  replaced: { ...KEY, expiresAt: '2026-11-21T16:00:00.000Z', replacedBy: 'key_c4b3a2817f4e3d9c2a6f1b5b' },
};

export const REVOKED_KEY: RevokedKeyDocument = {
  ...KEY,
  id: ROTATED_KEY.id,
  prefix: ROTATED_KEY.prefix,
  createdAt: ROTATED_KEY.createdAt,
  revokedAt: '2026-11-20T18:00:00.000Z',
  stillValid: [ROTATED_KEY.replaced],
};

export const USAGE: UsageDocument = {
  organization: ORGANIZATION.id,
  plan: 'pro',
  period: { start: '2026-11-01T00:00:00.000Z', end: '2026-12-01T00:00:00.000Z' },
  limit: 5000,
  used: 120,
  reserved: 25,
  remaining: 4855,
  verification: {
    exact: true,
    periods: [{ period: '2026-11', used: 120, recomputed: 120, forfeited: 0, settledCalls: 9 }],
  },
};

export const PRUNED: PrunedDocument = { retentionMonths: 24, keptFrom: '2024-11', periods: 3, calls: 4120 };
