import type { ApiKey } from '../organizations/api-key.entity.js';
import type { IssuedKey, RevokedKey, RotatedKey } from '../organizations/api-keys.service.js';
import type { AuditEntry } from '../organizations/audit-trail.js';
import type { Organization } from '../organizations/organization.entity.js';
import type { DeletedOrganization } from '../organizations/organizations.service.js';
import type { Page } from '../organizations/page.js';
import type {
  AuditPageDto,
  DeletedOrganizationDto,
  IssuedKeyDto,
  KeyDto,
  OrganizationDto,
  RevokedKeyDto,
  RotatedKeyDto,
} from './http/dto/responses.dto.js';

// Separate from the classes, and with type imports only, so that the commands do not load @nestjs/swagger.

export function toOrganizationDto(organization: Organization): OrganizationDto {
  const { id, name, plan, monthlyLimit, createdAt } = organization;
  return { id, name, plan, monthlyLimit, createdAt: createdAt.toISOString() };
}

export function toDeletedOrganizationDto(deleted: DeletedOrganization): DeletedOrganizationDto {
  const { organization, deletedAt, revokedKeys } = deleted;
  return { ...toOrganizationDto(organization), deletedAt: deletedAt.toISOString(), revokedKeys };
}

export function toKeyDto(apiKey: ApiKey): KeyDto {
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

export function toIssuedKeyDto({ key, apiKey }: IssuedKey): IssuedKeyDto {
  const { id, ...rest } = toKeyDto(apiKey);
  return { id, key, ...rest };
}

export function toRotatedKeyDto({ replaced, ...issued }: RotatedKey): RotatedKeyDto {
  return { ...toIssuedKeyDto(issued), replaced: toKeyDto(replaced) };
}

export function toRevokedKeyDto({ revoked, stillValid }: RevokedKey): RevokedKeyDto {
  return { ...toKeyDto(revoked), stillValid: stillValid.map(toKeyDto) };
}

export function toAuditPageDto({ items, next }: Page<AuditEntry>): AuditPageDto {
  return { entries: items.map((entry) => ({ ...entry, at: entry.at.toISOString() })), next };
}
