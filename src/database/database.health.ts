import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthCheckAttempt } from '@nestjs/terminus';
import { DataSource } from 'typeorm';

/** Locks no row, but fails on a server that takes no writes, and so that connection is closed: a failover may be over. */
const CAN_WRITE = 'SELECT FROM organizations WHERE false FOR UPDATE';

/** Whether the database answers and takes writes. Without it no key can be looked at and nothing can be charged. */
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
