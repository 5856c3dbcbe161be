import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/audit-trail.js';
import { AuthModule } from '../auth/auth.module.js';
import { JobsModule } from '../jobs/jobs.module.js';
import { OrganizationsModule } from '../organizations/organizations.module.js';
import { QuotaModule } from '../quota/quota.module.js';
import { AdminKeysController } from './http/keys.controller.js';
import { AdminOperationsController } from './http/operations.controller.js';
import { AdminOrganizationsController } from './http/organizations.controller.js';
import { AdminPageController } from './http/page.controller.js';

/** The admin commands over HTTP, under `/admin`. */
@Module({
  imports: [AuditModule, AuthModule, JobsModule, OrganizationsModule, QuotaModule],
  controllers: [AdminOrganizationsController, AdminKeysController, AdminOperationsController, AdminPageController],
})
export class AdminModule {}
