import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthCheckAttempt } from '@nestjs/terminus';
import { DataSource } from 'typeorm';

/** Locks no row, but fails on a read-only server, which closes the connection: a failover may have happened. */
const CAN_WRITE = 'SELECT FROM organizations WHERE false FOR UPDATE';

/** Whether the database responds and accepts writes. Without it no API key can be verified and nothing can be charged. */
@Injectable()
export class DatabaseHealth {
  readonly name = 'database';
  readonly critical = true;

  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly dataSource: DataSource,
  ) {}

  check(): HealthCheckAttempt {
    return this.indicators.check(this.name).attempt(() => this.dataSource.query(CAN_WRITE));
  }
}
