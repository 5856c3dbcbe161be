import type { ApiKey } from '../organizations/api-key.entity.js';
import type { IssuedKey, RevokedKey, RotatedKey } from '../organizations/api-keys.service.js';
import type { Organization } from '../organizations/organization.entity.js';
import type { DeletedOrganization } from '../organizations/organizations.service.js';
import type { Usage, Verification } from '../quota/usage.js';
import type { Pruned } from '../quota/usage-retention.js';

/** An organization as the admin side shows it. */
export interface OrganizationDocument {
  id: string;
  name: string;
  plan: string;
  /** Transcripts a month; null follows the plan. */
  monthlyLimit: number | null;
  createdAt: string;
}

/** An organization that was deleted, and how many keys were good until then. */
export type DeletedOrganizationDocument = OrganizationDocument & { deletedAt: string; revokedKeys: number };

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

/** A key that was issued in place of another, with its plaintext. */
export type RotatedKeyDocument = IssuedKeyDocument & { replaced: KeyDocument };

/** A key that was revoked, and the keys in whose place it was issued that are still valid. */
export type RevokedKeyDocument = KeyDocument & { stillValid: KeyDocument[] };

/** The usage of this month and, when it was asked for, the count of every month beside the sum of its calls. */
export type UsageDocument = Usage & { verification?: Verification };

/** What a pruning removed. */
export type PrunedDocument = Pruned;

export function organizationDocument(organization: Organization): OrganizationDocument {
  const { id, name, plan, monthlyLimit, createdAt } = organization;
  return { id, name, plan, monthlyLimit, createdAt: createdAt.toISOString() };
}

export function deletedOrganizationDocument(deleted: DeletedOrganization): DeletedOrganizationDocument {
  const { organization, deletedAt, revokedKeys } = deleted;
  return { ...organizationDocument(organization), deletedAt: deletedAt.toISOString(), revokedKeys };
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

export function rotatedKeyDocument({ replaced, ...issued }: RotatedKey): RotatedKeyDocument {
  return { ...issuedKeyDocument(issued), replaced: keyDocument(replaced) };
}

export function revokedKeyDocument({ revoked, stillValid }: RevokedKey): RevokedKeyDocument {
  return { ...keyDocument(revoked), stillValid: stillValid.map(keyDocument) };
}
