import { Module } from '@nestjs/common';
import { ApiKeysService } from './api-keys.service.js';
import { AuditTrail } from './audit-trail.js';
import { TokenClientsService } from './token-clients.service.js';
import { OrganizationsService } from './organizations.service.js';

@Module({
  providers: [OrganizationsService, ApiKeysService, TokenClientsService, AuditTrail],
  exports: [OrganizationsService, ApiKeysService, TokenClientsService, AuditTrail],
})
export class OrganizationsModule {}
