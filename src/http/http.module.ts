import { Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR, APP_PIPE, DiscoveryModule } from '@nestjs/core';
import { Environment } from '../config/environment.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { Connections } from './server/connections.js';
import { ErrorFilter } from './errors/error.filter.js';
import { redactorFor } from '../observability/logging/logger.js';
import { DeclaredInput } from './routes/declared-input.js';
import { RequestObserver } from './server/request-observer.js';
import { Routes } from './routes/routes.js';
import { ShutdownState } from './server/connections.js';
import { StrictValidationPipe } from './routes/validation.js';

/** The routes, and the pipe, interceptor and filter of every one. */
@Global()
@Module({
  imports: [DiscoveryModule, MetricsRegistryModule],
  providers: [
    Connections,
    RequestObserver,
    ShutdownState,
    Routes,
    {
      provide: StrictValidationPipe,
      inject: [Environment],
      useFactory: (environment: Environment) => new StrictValidationPipe(redactorFor(environment)),
    },
    { provide: APP_PIPE, useExisting: StrictValidationPipe },
    { provide: APP_INTERCEPTOR, useClass: DeclaredInput },
    { provide: APP_FILTER, useClass: ErrorFilter },
  ],
  exports: [Connections, RequestObserver, Routes, ShutdownState],
})
export class HttpModule {}
