import { Module } from '@nestjs/common';
import { ApiKeyUse } from './api-key-use.js';
import { ApiKeysService } from './api-keys.service.js';
import { OrganizationsService } from './organizations.service.js';

@Module({
  providers: [OrganizationsService, ApiKeysService, ApiKeyUse],
  exports: [OrganizationsService, ApiKeysService],
})
export class OrganizationsModule {}
