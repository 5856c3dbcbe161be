import { afterAll, beforeAll, describe, expect, it, afterEach, beforeEach } from '@jest/globals';
import fc from 'fast-check';
import { csvOf, REPORT_GROUPS, type ReportRequest, type UsageReport } from '../../src/quota/usage-report.js';
import { type Customer, QuotaDatabase } from './quota-database.js';

describe('usage', () => {
  const START = Date.parse('2026-01-01T00:00:00Z');
  const MINUTES = 90 * 24 * 60;
  let database: QuotaDatabase;

  beforeAll(async () => {
    database = await QuotaDatabase.open();
  });
  afterAll(() => database.close());

  async function spend(customer: Customer, at: Date, fetched: number): Promise<void> {
    await database.clock.stop(at);
    await database.quota.settle(await database.reserved(customer, fetched + 1), fetched);
  }

  const report = ({ organizationId }: Customer, request: ReportRequest): Promise<UsageReport> =>
    database.reports.report(organizationId, request);

  describe('a report of the usage', () => {
    it('adds up to the ledger, by day, key and resource, and over any division of the days', async () => {
      const call = fc.record({
        minute: fc.integer({ min: 0, max: MINUTES - 1 }),
        fetched: fc.integer({ min: 0, max: 9 }),
      });
      const calls = fc.array(call, { minLength: 1, maxLength: 12 });
      await fc.assert(
        fc.asyncProperty(calls, fc.integer({ min: 1, max: 89 }), async (made, days) => {
          const customer = await database.newCustomer(1_000);
          for (const { minute, fetched } of made) await spend(customer, new Date(START + minute * 60_000), fetched);
          const { exact, periods } = await database.quota.verify(customer.organizationId);
          const charged = periods.reduce((sum, { used }) => sum + used, 0);
          expect(exact).toBe(true);

          const between = new Date(START + days * 86_400_000).toISOString().slice(0, 10);
          for (const by of REPORT_GROUPS) {
            const whole = await report(customer, { from: '2026-01-01', to: '2026-04-01', by });
            expect(whole.charged).toBe(charged);
            expect(whole.rows.reduce((sum, row) => sum + row.charged, 0)).toBe(charged);
            expect(whole.rows.reduce((sum, row) => sum + row.calls, 0)).toBe(made.length);
            const first = await report(customer, { from: '2026-01-01', to: between, by });
            const second = await report(customer, { from: between, to: '2026-04-01', by });
            expect(first.charged + second.charged).toBe(charged);
          }
          for (const { period, used } of periods) {
            const next = new Date(Date.UTC(2026, Number(period.slice(5)), 1)).toISOString().slice(0, 10);
            expect((await report(customer, { from: `${period}-01`, to: next })).charged).toBe(used);
          }
        }),
        { numRuns: 15 },
      );
    });

    it('over many months, with days of which no call was settled, is the sum of the ledger', async () => {
      const customer = await database.newCustomer(1_000);
      for (let month = 0; month < 13; month += 1) {
        await spend(customer, new Date(Date.UTC(2025, month, 1 + month)), month);
        await database.clock.stop(new Date(Date.UTC(2025, month, 20)));
        await database.reserved(customer, 1);
        await spend(customer, new Date(Date.UTC(2025, month + 1, 0, 23, 59, 59)), 2);
      }
      const [ledger] = await database.dataSource.query<unknown[]>(
        `SELECT count(*)::integer AS calls, sum(charged)::integer AS charged FROM quota_reservations
        WHERE organization_id = $1 AND settled_at IS NOT NULL`,
        [customer.organizationId],
      );
      expect(ledger).toEqual({ calls: 26, charged: 104 });
      for (const by of REPORT_GROUPS) {
        const { rows, charged } = await report(customer, { from: '2025-01-01', to: '2026-02-01', by });
        expect({ calls: rows.reduce((sum, row) => sum + row.calls, 0), charged }).toEqual(ledger);
        expect(rows.map(({ group }) => group)).toEqual(rows.map(({ group }) => group).sort());
      }
      const { exact, periods } = await database.quota.verify(customer.organizationId);
      expect(exact).toBe(true);
      expect(periods.map(({ period, used }) => [period, used])).toEqual(
        Array.from({ length: 13 }, (_month, month) => [
          new Date(Date.UTC(2025, month)).toISOString().slice(0, 7),
          month + 2,
        ]),
      );
    });

    it('is of the current month and by day unless asked otherwise, and names days as UTC has them', async () => {
      const customer = await database.newCustomer(100);
      await spend(customer, new Date('2026-04-30T23:59:59.999Z'), 1);
      await spend(customer, new Date('2026-05-01T00:00:00Z'), 2);
      await spend(customer, new Date('2026-05-31T23:59:59.999Z'), 4);
      expect(await report(customer, {})).toEqual({
        from: '2026-05-01',
        to: '2026-06-01',
        by: 'day',
        charged: 6,
        rows: [
          { group: '2026-05-01', calls: 1, charged: 2, forfeited: 0 },
          { group: '2026-05-31', calls: 1, charged: 4, forfeited: 0 },
        ],
      });
      expect((await report(customer, { from: '2026-04-30', to: '2026-05-01', by: 'key' })).rows).toEqual([
        { group: customer.keyId, name: 'default', calls: 1, charged: 1, forfeited: 0 },
      ]);
    });

    it.each<[ReportRequest, RegExp]>([
      [{ from: '2026-02-30' }, /^from must be a day such as/],
      [{ to: '2026-13-01' }, /^to must be a day such as/],
      [{ from: '2026-05-02', to: '2026-05-02' }, /^to must be a day after from \(2026-05-02\)/],
      [{ from: '2025-01-01', to: '2026-02-06' }, /^from and to must be at most 400 days apart, not 401\./],
    ])('refuses %j', async (request, message) => {
      const customer = await database.newCustomer(1);
      await expect(report(customer, request)).rejects.toThrow(message);
    });
  });

  describe('a report of all organizations', () => {
    it('has a row for each, deleted ones and those without calls too, that is the sum of its keys and of its own report', async () => {
      const customers = [await database.newCustomer(1_000), await database.newCustomer(1_000)];
      const idle = await database.newCustomer();
      const [first, second] = customers;
      if (!first || !second) throw new Error('There are two customers.');
      const { id: keyId } = await database.keys.issue({ organizationId: first.organizationId, name: 'nightly' });
      for (let day = 0; day < 40; day += 3) {
        await spend(first, new Date(Date.UTC(2026, 8, 20 + day)), day);
        await spend({ ...first, keyId }, new Date(Date.UTC(2026, 8, 20 + day, 23, 59, 59)), 1);
        await spend(second, new Date(Date.UTC(2026, 8, 20 + day, 12)), 2);
      }
      await database.clock.stop(new Date('2026-10-31T00:00:00Z'));
      await database.reserved(first, 9);
      await database.organizations.delete(second.organizationId);
      for (const request of [
        { from: '2026-10-01', to: '2026-11-01' },
        { from: '2026-09-20', to: '2026-10-21' },
        { from: '2026-09-23', to: '2026-09-24' },
        { from: '2025-10-01', to: '2026-11-05' },
      ]) {
        const { rows, ...all } = await database.reports.reportAll(request);
        expect(all).toEqual({
          ...request,
          by: 'organization',
          charged: rows.reduce((sum, row) => sum + row.charged, 0),
        });
        for (const customer of [...customers, idle]) {
          const own = await report(customer, { ...request, by: 'key' });
          const row = rows.find(({ group }) => group === customer.organizationId);
          expect(row).toMatchObject({ name: 'Acme', charged: own.charged, keys: own.rows });
          expect(row?.calls).toBe(own.rows.reduce((sum, { calls }) => sum + calls, 0));
        }
      }
      const { from, to, rows } = await database.reports.reportAll({});
      expect([from, to]).toEqual(['2026-10-01', '2026-11-01']);
      expect(
        rows
          .find(({ group }) => group === first.organizationId)
          ?.keys?.map(({ name }) => name)
          .sort(),
      ).toEqual(['default', 'nightly']);
      await expect(database.reports.reportAll({ from: '2025-01-01', to: '2026-02-06' })).rejects.toThrow('400 days');
    });

    it('is CSV that a spreadsheet neither runs nor splits', () => {
      const counts = { calls: 1, charged: 2, forfeited: 0 };
      const key = { group: 'key_1', name: 'a;b', ...counts };
      const rows = [
        {
          group: 'org_1',
          name: '=HYPERLINK("http://x","y")',
          ...counts,
          keys: [key, { ...key, group: 'key_2', name: 'c,d' }],
        },
        { group: 'org_2', name: 'Böttcher & Söhne', ...counts, charged: 0, keys: [] },
      ];
      const range = { from: '2026-10-01', to: '2026-11-01' };
      expect(csvOf({ ...range, by: 'organization', charged: 2, rows })).toBe(
        'organization,name,calls,charged,forfeited,keys\n' +
          `org_1,"'=HYPERLINK(""http://x"",""y"")",1,2,0,"key_1 (a;b): 2; key_2 (c,d): 2"\n` +
          'org_2,Böttcher & Söhne,1,0,0,\n',
      );
      expect(csvOf({ ...range, by: 'day', charged: 0, rows: [] })).toBe('day,calls,charged,forfeited\n');
    });
  });

  describe('the verification', () => {
    const months = ['2026-01', '2026-02', '2026-03', '2026-04'];

    it.each([
      [
        'a call',
        "UPDATE quota_reservations SET fetched = fetched + 1 WHERE organization_id = $1 AND period_start = '2026-02-01'",
        [3, 4, 3, 3],
        [3, 3, 3, 3],
      ],
      [
        'a count',
        "UPDATE quota_periods SET used = used - 1 WHERE organization_id = $1 AND period_start = '2026-03-01'",
        [3, 3, 3, 3],
        [3, 3, 2, 3],
      ],
      [
        'a count that is missing',
        "DELETE FROM quota_periods WHERE organization_id = $1 AND period_start = '2026-01-01'",
        [3, 3, 3, 3],
        [0, 3, 3, 3],
      ],
      [
        'calls that are missing',
        "DELETE FROM quota_reservations WHERE organization_id = $1 AND period_start = '2026-04-01'",
        [3, 3, 3, 0],
        [3, 3, 3, 3],
      ],
    ])('names the month among others in which %s is wrong', async (_what, corruption, recomputed, used) => {
      const customer = await database.newCustomer(100);
      for (const month of months) await spend(customer, new Date(`${month}-10T00:00:00Z`), 3);
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
      await database.dataSource.query(corruption, [customer.organizationId]);
      const verification = await database.quota.verify(customer.organizationId);
      expect(verification.exact).toBe(false);
      expect(verification.periods).toMatchObject(
        months.map((period, index) => ({ period, used: used[index], recomputed: recomputed[index] })),
      );
    });
  });

  describe('the usage', () => {
    it('has the last six months, newest first, without those in which nothing was charged', async () => {
      const customer = await database.newCustomer(100);
      for (const [at, fetched] of [
        ['2025-12-31T23:59:59Z', 9],
        ['2026-01-01T00:00:00Z', 1],
        ['2026-03-01T00:00:00Z', 0],
        ['2026-05-01T00:00:00Z', 2],
        ['2026-06-01T00:00:00Z', 3],
      ] as const) {
        await spend(customer, new Date(at), fetched);
      }
      expect((await database.quota.usage(customer.organizationId)).history).toEqual([
        { period: '2026-06', used: 3 },
        { period: '2026-05', used: 2 },
        { period: '2026-01', used: 1 },
      ]);
    });
  });
});

describe('pruning the usage', () => {
  let database: QuotaDatabase;

  beforeEach(async () => {
    database = await QuotaDatabase.open();
  });
  afterEach(() => database.close());

  async function spend(customer: Customer, at: string, fetched: number): Promise<void> {
    await database.clock.stop(new Date(at));
    await database.quota.settle(await database.reserved(customer, fetched + 1), fetched);
  }

  const months = async ({ organizationId }: Customer): Promise<string[]> =>
    (await database.quota.verify(organizationId)).periods.map(({ period }) => period);

  it('removes months before the retention period with their calls, also of a deleted organization, and leaves the rest exact', async () => {
    const [one, other] = [await database.newCustomer(100), await database.newCustomer(100)];
    for (const at of ['2024-03-31T23:59:59Z', '2024-04-30T23:59:59Z', '2024-05-01T00:00:00Z', '2026-05-02T00:00:00Z']) {
      await spend(one, at, 3);
      await spend(one, at, 0);
    }
    await spend(other, '2024-04-15T00:00:00Z', 2);
    await database.organizations.delete(other.organizationId);
    await database.clock.stop(new Date('2026-05-15T12:00:00Z'));

    expect(await database.retention.prune()).toEqual({
      retentionMonths: 24,
      keptFrom: '2024-05',
      periods: 3,
      calls: 5,
      next: null,
    });
    expect(await months(one)).toEqual(['2024-05', '2026-05']);
    expect(await months(other)).toEqual([]);
    expect(await database.quota.verify(one.organizationId)).toMatchObject({ exact: true });
    expect(await database.quota.usage(one.organizationId)).toMatchObject({ used: 3, remaining: 97 });
    expect(await database.retention.prune()).toMatchObject({ periods: 0, calls: 0 });
  });

  it('works in steps, each of which says where the next one begins', async () => {
    const customers = [
      await database.newCustomer(100),
      await database.newCustomer(100),
      await database.newCustomer(100),
    ];
    for (const customer of customers) await spend(customer, '2024-03-31T23:59:59Z', 3);
    await database.clock.stop(new Date('2026-05-15T12:00:00Z'));
    // A step is over after its first statement.
    database.retention.stepMs = 0;
    const steps = [await database.retention.prune()];
    for (let next = steps[0]?.next ?? null; next !== null;) {
      const step = await database.retention.prune(undefined, next);
      steps.push(step);
      next = step.next;
    }
    const ids = customers.map(({ organizationId }) => organizationId).sort();
    expect(steps.map(({ calls, next }) => [calls, next])).toEqual([
      [1, ids[1]],
      [1, ids[2]],
      [1, null],
    ]);
    for (const customer of customers) expect(await months(customer)).toEqual([]);
  });

  it('removes expired reservations, but not those of running calls, which can still be settled', async () => {
    const customer = await database.newCustomer(100);
    await database.clock.stop(new Date('2026-04-30T23:59:30Z'));
    await database.reserved(customer, 5, 10);
    const running = await database.reserved(customer, 7, 60);
    await spend(customer, '2026-04-30T23:59:31Z', 1);
    Object.assign(database.environment, { USAGE_RETENTION_MONTHS: 1 });
    await database.clock.stop(new Date('2026-06-01T00:00:00Z'));
    await database.extendLease(running, new Date('2026-06-01T00:01:00Z'));
    expect(await database.retention.prune()).toMatchObject({ keptFrom: '2026-05', calls: 2 });
    await database.quota.settle(running, 6);
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({
      exact: true,
      periods: [{ period: '2026-04', used: 6, recomputed: 6, settledCalls: 1 }],
    });
  });

  it('during settlements never leaves an inexact month', async () => {
    const customer = await database.newCustomer(10_000);
    await database.clock.stop(new Date('2026-01-10T00:00:00Z'));
    const ids: string[] = [];
    for (let count = 0; count < 40; count += 1) ids.push(await database.reserved(customer, 5, 60));
    Object.assign(database.environment, { USAGE_RETENTION_MONTHS: 1 });
    // The months have long ended although the calls still have their leases: only a test's clock jumps like this.
    for (const id of ids) await database.extendLease(id, new Date('2027-01-01T00:00:00Z'));
    await database.clock.stop(new Date('2026-06-15T00:00:00Z'));
    let settling = true;
    const settled = Promise.all(ids.map((id) => database.quota.settle(id, 3))).finally(() => (settling = false));
    do {
      await database.retention.prune();
      expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
    } while (settling);
    await settled;
    expect(await database.quota.verify(customer.organizationId)).toMatchObject({ exact: true });
  });
});
