import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthCheckAttempt } from '@nestjs/terminus';
import { DataSource } from 'typeorm';

/** Whether the database answers. Without it no key can be looked at and nothing can be charged. */
@Injectable()
export class DatabaseHealth {
  readonly name = 'database';
  readonly critical = true;

  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly dataSource: DataSource,
  ) {}

  check(): HealthCheckAttempt {
    return this.indicators.check(this.name).attempt(() => this.dataSource.query('select 1'));
  }
}
