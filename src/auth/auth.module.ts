import { Module } from '@nestjs/common';
import { OrganizationsModule } from '../organizations/organizations.module.js';
import { RateLimitModule } from '../rate-limit/rate-limit.module.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { FailedAuthentications } from './failed-authentications.js';
import { PlanGuard } from './guarded.decorator.js';

const providers = [ApiKeyGuard, PlanGuard, FailedAuthentications];

/** Exports everything that `RequiresFeature` and `RequiresApiKey` need in the module of a controller. */
@Module({
  imports: [OrganizationsModule, RateLimitModule],
  providers,
  exports: [OrganizationsModule, RateLimitModule, ...providers],
})
export class AuthModule {}
