import { Module } from '@nestjs/common';
import { ApiKeysService } from './api-keys.service.js';
import { LastUsedRecorder } from './last-used-recorder.js';
import { OrganizationsService } from './organizations.service.js';

@Module({
  providers: [OrganizationsService, ApiKeysService, LastUsedRecorder],
  exports: [OrganizationsService, ApiKeysService],
})
export class OrganizationsModule {}
