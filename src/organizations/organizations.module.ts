import { Module } from '@nestjs/common';
import { ApiKeysService } from './api-keys.service.js';
import { AuditTrail } from './audit-trail.js';
import { OrganizationsService } from './organizations.service.js';

@Module({
  providers: [OrganizationsService, ApiKeysService, AuditTrail],
  exports: [OrganizationsService, ApiKeysService, AuditTrail],
})
export class OrganizationsModule {}
