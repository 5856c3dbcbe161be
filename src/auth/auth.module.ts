import { Module } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { OrganizationsModule } from '../organizations/organizations.module.js';
import { CallsInFlight } from '../rate-limit/calls-in-flight.js';
import { CallRate } from '../rate-limit/call-rate.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';
import { Authentication } from './authentication.js';
import { ApiKeyGuard, CallLimitsGuard, PlanGuard, FeedAccess } from './call.guards.js';
import { FailedAuthentications } from './failed-authentications.js';
import { IdentityProvider } from './oidc/identity-provider.js';

const limits = [CallRate, CallsInFlight, RejectionMetrics];
const provider = {
  provide: IdentityProvider,
  inject: [Environment],
  useFactory: (environment: Environment) => IdentityProvider.of(environment),
};
const authentication = [Authentication, provider, FailedAuthentications, FeedAccess];
const providers = [ApiKeyGuard, PlanGuard, CallLimitsGuard, ...authentication, ...limits];

/** Exports everything that `RequiresFeature` and `RequiresApiKey` need in the module of a controller. */
@Module({
  imports: [OrganizationsModule, MetricsRegistryModule],
  providers,
  exports: [OrganizationsModule, ...providers],
})
export class AuthModule {}
