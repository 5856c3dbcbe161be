import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { CacheHealth } from '../../cache/cache.health.js';
import { DatabaseHealth } from '../../database/database.health.js';
import { HealthController } from './health.controller.js';
import { HealthService } from './health.service.js';

/** Composes the features' own checks; they are provided here so that the commands do not load what only probes need. */
@Module({
  imports: [TerminusModule],
  controllers: [HealthController],
  providers: [DatabaseHealth, CacheHealth, HealthService],
  exports: [HealthService],
})
export class HealthModule {}
