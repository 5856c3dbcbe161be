import type { ApiKey } from '../organizations/api-key.entity.js';
import type { IssuedKey } from '../organizations/api-keys.service.js';
import type { Organization } from '../organizations/organization.entity.js';

/** An organization as the admin side shows it. */
export interface OrganizationDocument {
  id: string;
  name: string;
  plan: string;
  /** Transcripts a month; null follows the plan. */
  monthlyLimit: number | null;
  createdAt: string;
}

/** A key as the admin side shows it; times are ISO 8601. */
export interface KeyDocument {
  id: string;
  organizationId: string;
  name: string;
  prefix: string;
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
  /** The id of the key that was issued in its place. */
  replacedBy: string | null;
}

/** A key with its plaintext, which is shown this once. */
export type IssuedKeyDocument = { key: string } & KeyDocument;

export function organizationDocument(organization: Organization): OrganizationDocument {
  const { id, name, plan, monthlyLimit, createdAt } = organization;
  return { id, name, plan, monthlyLimit, createdAt: createdAt.toISOString() };
}

export function keyDocument(apiKey: ApiKey): KeyDocument {
  const { id, organizationId, name, prefix, createdAt, expiresAt, revokedAt, lastUsedAt, replacedBy } = apiKey;
  return {
    id,
    organizationId,
    name,
    prefix,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    replacedBy,
  };
}

export function issuedKeyDocument({ key, apiKey }: IssuedKey): IssuedKeyDocument {
  const { id, ...rest } = keyDocument(apiKey);
  return { id, key, ...rest };
}
