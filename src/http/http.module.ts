import { Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { Environment } from '../config/environment.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { Connections } from './connections.js';
import { ErrorFilter } from './error.filters.js';
import { redactorFor } from '../observability/logging/redaction.js';
import { RequestObserver } from './request-observer.js';
import { ShutdownState } from './shutdown-state.js';
import { StrictValidationPipe } from './validation.js';

/** The pipe and the filter of every HTTP route. */
@Global()
@Module({
  imports: [MetricsRegistryModule],
  providers: [
    Connections,
    RequestObserver,
    ShutdownState,
    {
      provide: APP_PIPE,
      inject: [Environment],
      useFactory: (environment: Environment) => new StrictValidationPipe(redactorFor(environment)),
    },
    { provide: APP_FILTER, useClass: ErrorFilter },
  ],
  exports: [Connections, RequestObserver, ShutdownState],
})
export class HttpModule {}
