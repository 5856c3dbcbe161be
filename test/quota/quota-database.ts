import { ConsoleLogger, Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import { Environment } from '../../src/config/environment.js';
import { openDatabase } from '../../src/database/data-source.js';
import type { Plan } from '../../src/domain/plan.js';
import { ApiKey } from '../../src/organizations/api-key.js';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { Organization } from '../../src/organizations/organization.entity.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { QuotaMetrics } from '../../src/quota/quota-metrics.js';
import { QuotaService, type ReservationResult } from '../../src/quota/quota.service.js';
import { SettlementRetries } from '../../src/quota/settlement-retries.js';
import { UsageReports } from '../../src/quota/usage-report.js';
import { UsageRetention } from '../../src/quota/usage-retention.js';
import { DatabaseClock } from '../database/database-clock.js';
import type { ThresholdEvent } from './quota-model.js';
import { createTestDatabase, type TestDatabase } from '../database/test-database.js';
import { refuseSecrets, rowsAsText } from '../harness/plaintext-keys.js';

export const PLAN_FREE_MONTHLY = 50;
export const PLAN_PRO_MONTHLY = 5_000;

/** A customer with a key. */
export interface Customer {
  organizationId: string;
  keyId: string;
}

/** A reservation as the functions of the database take it. */
export function reservationOf(id: string, { organizationId, keyId }: Customer, required: number): string {
  const ids = { id, organization_id: organizationId, key_id: keyId };
  return JSON.stringify({ ...ids, request_id: 'r', channel_id: 'UC', required });
}

/** An empty database of one test file with the services over it, and a clock that the test can set. */
export class QuotaDatabase {
  readonly organizations: OrganizationsService;
  readonly keys: ApiKeysService;
  readonly quota: QuotaService;
  readonly reports: UsageReports;
  readonly retention: UsageRetention;
  readonly clock: DatabaseClock;

  private constructor(
    readonly url: string,
    readonly dataSource: DataSource,
    readonly environment: Environment,
    readonly close: () => Promise<void>,
  ) {
    this.organizations = new OrganizationsService(dataSource);
    this.keys = new ApiKeysService(dataSource);
    this.quota = this.newQuotaService();
    this.reports = new UsageReports(dataSource);
    this.retention = new UsageRetention(dataSource, environment);
    this.clock = new DatabaseClock((statement) => dataSource.query(statement));
  }

  /** @param existing a database that is there already; `close` drops it all the same */
  static async open(existing?: TestDatabase): Promise<QuotaDatabase> {
    Logger.overrideLogger(false);
    const testDatabase = existing ?? (await createTestDatabase('migrated'));
    const { url } = testDatabase;
    const environment = Object.assign(new Environment(), { DATABASE_URL: url, PLAN_FREE_MONTHLY, PLAN_PRO_MONTHLY });
    const database = await openDatabase(environment, {
      as: 'service',
      entities: [Organization, ApiKey],
    });
    return new QuotaDatabase(url, database.dataSource, environment, async () => {
      await database.close();
      Logger.overrideLogger(new ConsoleLogger());
      const rows = await rowsAsText(testDatabase);
      await testDatabase.drop();
      refuseSecrets({ rows });
    });
  }

  newQuotaService(registry = new Registry()): QuotaService {
    const metrics = new QuotaMetrics(registry);
    return new QuotaService(this.dataSource, this.environment, metrics, new SettlementRetries(metrics));
  }

  async newCustomer(monthlyLimit: number | null = null, plan: Plan = 'pro'): Promise<Customer> {
    const { id: organizationId } = await this.organizations.create({ name: 'Acme', plan, monthlyLimit });
    const { id: keyId } = await this.keys.issue({ organizationId });
    return { organizationId, keyId };
  }

  async reserve(
    customer: Customer,
    required: number,
    leaseSeconds = 60,
  ): Promise<ReservationResult & { granted: boolean }> {
    const request = { ...customer, requestId: 'r', resource: 'UC', required, leaseSeconds };
    const result = await this.quota.reserve(request);
    return { ...result, granted: result.reservation !== undefined };
  }

  /** Reserves and gives the id; fails when it is refused. */
  async reserved(customer: Customer, required: number, leaseSeconds = 60): Promise<string> {
    const { reservation } = await this.reserve(customer, required, leaseSeconds);
    if (!reservation) throw new Error('The reservation was refused.');
    return reservation.id;
  }

  /** Adds a webhook for all events. Nothing sends them. */
  async listen({ organizationId }: Customer): Promise<void> {
    const insert =
      'INSERT INTO webhooks (id, organization_id, url, secret, created_at) VALUES ($1, $2, $3, $4, clock_now())';
    const values = [`whk_${organizationId}`, organizationId, 'https://hooks.example.com/', Buffer.alloc(1)];
    await this.dataSource.query(insert, values);
  }

  /** The stored events of thresholds, oldest month first. */
  async thresholdEvents({ organizationId }: Customer): Promise<ThresholdEvent[]> {
    const statement = `
      SELECT data FROM webhook_deliveries WHERE webhook_id = $1 AND type = 'quota.threshold'
        ORDER BY data->>'period', (data->>'threshold')::integer`;
    const rows = await this.dataSource.query<{ data: ThresholdEvent }[]>(statement, [`whk_${organizationId}`]);
    return rows.map(({ data }) => data);
  }

  async extendLease(id: string, until: Date): Promise<void> {
    await this.dataSource.query('UPDATE quota_reservations SET leased_until = $2 WHERE id = $1', [id, until]);
    const open = 'UPDATE quota_open_reservations SET leased_until = $2 WHERE reservation_id = $1';
    await this.dataSource.query(open, [id, until]);
  }
}

/** The value of a counter, or of its series with this label. */
export async function valueOf(registry: Registry, name: string, label?: string): Promise<number> {
  const { values } = (await registry.getSingleMetric(name)?.get()) ?? { values: [] };
  return values.find(({ labels }) => label === undefined || Object.values(labels).includes(label))?.value ?? 0;
}
