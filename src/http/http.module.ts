import { Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR, APP_PIPE, DiscoveryModule } from '@nestjs/core';
import { Environment } from '../config/environment.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { Connections } from './connections.js';
import { ErrorFilter } from './error.filter.js';
import { redactorFor } from '../observability/logging/redaction.js';
import { DeclaredInput } from './declared-input.js';
import { RequestObserver } from './request-observer.js';
import { Routes } from './routes.js';
import { ShutdownState } from './shutdown-state.js';
import { StrictValidationPipe } from './validation.js';

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
