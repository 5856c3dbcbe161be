import { Module } from '@nestjs/common';
import { Registry } from 'prom-client';

/**
 * Provides the prom-client `Registry` of this application. A feature imports this module and registers its own metrics.
 * prom-client's default registry is not used: several applications run in one test process.
 */
@Module({
  providers: [{ provide: Registry, useFactory: () => new Registry() }],
  exports: [Registry],
})
export class MetricsRegistryModule {}
