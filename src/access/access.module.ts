import { Module } from '@nestjs/common';
import { OrganizationsModule } from '../organizations/organizations.module.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { PlanGuard } from './plan.guard.js';

@Module({
  imports: [OrganizationsModule],
  providers: [ApiKeyGuard, PlanGuard],
  exports: [OrganizationsModule, ApiKeyGuard, PlanGuard],
})
export class AccessModule {}
