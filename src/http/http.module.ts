import { Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { Environment } from '../config/environment.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { Connections } from './connections.js';
import { ErrorFilter } from './error.filters.js';
import { redactorFor } from '../observability/logging/redaction.js';
import { RequestMetrics } from './request-metrics.js';
import { ShutdownState } from './shutdown-state.js';
import { StrictValidationPipe } from './validation.js';

/** The pipe and the filter of every HTTP route. */
@Global()
@Module({
  imports: [MetricsRegistryModule],
  providers: [
    Connections,
    RequestMetrics,
    ShutdownState,
    {
      provide: APP_PIPE,
      inject: [Environment],
      useFactory: (environment: Environment) => new StrictValidationPipe(redactorFor(environment)),
    },
    { provide: APP_FILTER, useClass: ErrorFilter },
  ],
  exports: [Connections, RequestMetrics, ShutdownState],
})
export class HttpModule {}
