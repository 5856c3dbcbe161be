import { Module } from '@nestjs/common';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { OrganizationsModule } from '../organizations/organizations.module.js';
import { CallsInFlightGuard } from '../rate-limit/calls-in-flight.guard.js';
import { CallsInFlight } from '../rate-limit/calls-in-flight.js';
import { CallRate } from '../rate-limit/call-rate.js';
import { RateLimitGuard } from '../rate-limit/rate-limit.guard.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { Authentication } from './authentication.js';
import { FailedAuthentications } from './failed-authentications.js';
import { IdentityProvider } from './oidc/identity-provider.js';
import { PermissionGuard } from './permission.guard.js';

const limits = [RateLimitGuard, CallRate, CallsInFlightGuard, CallsInFlight, RejectionMetrics];
const authentication = [Authentication, IdentityProvider, FailedAuthentications];
const providers = [ApiKeyGuard, PermissionGuard, ...authentication, ...limits];

/** Exports everything that `RequiresFeature` and `RequiresApiKey` need in the module of a controller. */
@Module({
  imports: [OrganizationsModule, MetricsRegistryModule],
  providers,
  exports: [OrganizationsModule, ...providers],
})
export class AuthModule {}
