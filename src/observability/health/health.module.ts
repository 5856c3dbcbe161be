import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { CacheHealth } from '../../cache/cache.health.js';
import { DatabaseHealth } from '../../database/database.health.js';
import { HealthController } from './health.controller.js';
import { HealthService } from './health.service.js';

/** Combines the health checks of the features. They are provided here, so that the CLI commands do not load Terminus. */
@Module({
  imports: [TerminusModule],
  controllers: [HealthController],
  providers: [DatabaseHealth, CacheHealth, HealthService],
  exports: [HealthService],
})
export class HealthModule {}
