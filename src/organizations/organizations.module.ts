import { Module } from '@nestjs/common';
import { ApiKeysService } from './api-keys.service.js';
import { TokenClientsService } from './token-clients.service.js';
import { OrganizationsService } from './organizations.service.js';

@Module({
  providers: [OrganizationsService, ApiKeysService, TokenClientsService],
  exports: [OrganizationsService, ApiKeysService, TokenClientsService],
})
export class OrganizationsModule {}
