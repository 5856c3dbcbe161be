import { Global, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { Connections } from './connections.js';
import { DomainErrorFilter, UnexpectedErrorFilter } from './error.filters.js';
import { ShutdownState } from './shutdown-state.js';

/** What every route shares. Of two filters Nest asks the one that was registered last first. */
@Global()
@Module({
  providers: [
    Connections,
    ShutdownState,
    { provide: APP_FILTER, useClass: UnexpectedErrorFilter },
    { provide: APP_FILTER, useClass: DomainErrorFilter },
  ],
  exports: [Connections, ShutdownState],
})
export class HttpModule {}
