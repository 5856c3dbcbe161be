import { readFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { WEBHOOK_SECRET_KEY } from '../webhooks/receiver.js';
import { scrape, sumOf, type Sample } from './exposition.js';
import { metricsIn } from './promql.js';

const MONITORING = join(import.meta.dirname, '../../docs/monitoring.md');

describe('metrics', () => {
  const RATE_LIMIT = 3;
  const TRANSCRIPTS = '/channels/{id}/transcripts';
  let service: TestService;
  /** A service with narrow limits. */
  let busy: TestService;

  beforeAll(async () => {
    service = await startService({ interruptible: true, environment: { UPSTREAM_RETRIES: 0, WEBHOOK_SECRET_KEY } });
    busy = await startService({
      environment: { CALLS_PER_PROCESS: 2, CALLS_PER_KEY: 1, RATE_LIMIT_PER_MINUTE: RATE_LIMIT },
    });
  });

  afterAll(async () => {
    await busy.close();
    await service.close();
  });

  beforeEach(() => {
    service.fakeYoutube.reset();
    service.link.join();
  });

  /** The increase of a sum by some work; a response is counted when its connection has finished it. */
  async function growth(
    work: () => Promise<unknown>,
  ): Promise<(name: string, labels?: Record<string, string>) => number> {
    const before = await scrape(service);
    const requests = sumOf(before, 'ct_http_requests_total');
    await work();
    let after: Sample[] = [];
    await until(async () => sumOf((after = await scrape(service)), 'ct_http_requests_total') > requests);
    return (name, labels) => sumOf(after, name, labels) - sumOf(before, name, labels);
  }

  describe('the metrics', () => {
    it('are in the Prometheus text format, each with a description and the unit in its name', async () => {
      const { status, headers, text } = await service.request('GET', '/metrics');
      expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
      const types = new Map(
        [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]),
      );
      expect(types.size).toBeGreaterThan(40);
      for (const [name, type] of types) {
        expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, 'm'));
        if (name.startsWith('ct_')) expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
        if (type === 'histogram') expect(name).toMatch(/_seconds$/);
      }
    });

    it('name the loops of background work that docs/monitoring.md lists', async () => {
      const [, list = ''] =
        /`ct_background_failures_total` \(`loop`\): (.*)/.exec(readFileSync(MONITORING, 'utf8')) ?? [];
      const failures = (await scrape(service)).filter(({ name }) => name === 'ct_background_failures_total');
      const listed = [...list.matchAll(/\w+/g)].map(([name]) => name);
      expect(listed.sort()).toEqual(failures.map(({ labels }) => labels['loop']).sort());
    });

    it('have no buckets by egress, of which there can be a hundred', async () => {
      const { key } = await service.organization();
      await service.get('/channels/@1-videos-no-44/transcripts', key);
      const samples = await scrape(service);
      const buckets = samples.filter(({ name, labels }) => name.endsWith('_bucket') && labels['kind'] === 'captions');
      expect(buckets).not.toEqual([]);
      expect(samples.filter(({ labels }) => 'le' in labels && 'exit' in labels)).toEqual([]);
    });

    it('include the running version', async () => {
      const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
        version: string;
      };
      expect(sumOf(await scrape(service), 'ct_build_info', { version, node_version: process.version })).toBe(1);
      expect(sumOf(await scrape(service), 'process_resident_memory_bytes')).toBeGreaterThan(1e7);
      expect(sumOf(await scrape(service), 'nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
    });

    it('count the entries, lookups, requests and charges of a call, and then of a cached call', async () => {
      const { key } = await service.organization();
      const request = () => service.get('/channels/@tidewater/transcripts?limit=5', key);
      const fetched = await growth(request);
      expect(fetched('ct_entries_total', { outcome: 'fetched' })).toBe(5);
      expect(fetched('ct_cache_lookups_total', { kind: 'transcript', result: 'miss' })).toBe(5);
      expect(fetched('ct_cache_lookups_total', { result: 'miss' })).toBe(8);
      expect(fetched('ct_quota_reservations_total', { outcome: 'granted' })).toBe(1);
      expect(fetched('ct_quota_settlements_total', { outcome: 'settled' })).toBe(1);
      expect(fetched('ct_quota_charged_transcripts_total')).toBe(5);
      expect(
        fetched('ct_http_requests_total', { route: TRANSCRIPTS, method: 'GET', status: '200', code: 'none' }),
      ).toBe(1);
      expect(fetched('ct_http_request_duration_seconds_count', { route: TRANSCRIPTS, status: '200' })).toBe(1);
      expect(fetched('ct_upstream_requests_total', { kind: 'captions', exit: 'direct', outcome: 'ok' })).toBe(5);
      expect(fetched('ct_upstream_request_duration_seconds_count', { kind: 'captions' })).toBe(5);
      expect(fetched('ct_upstream_exit_findings_total', { use: 'video', finding: 'answered' })).toBe(5);
      expect(fetched('ct_cache_size_bytes')).toBeGreaterThan(1_000);

      const cached = await growth(request);
      expect(cached('ct_entries_total', { outcome: 'cached' })).toBe(5);
      expect(cached('ct_entries_total')).toBe(5);
      expect(cached('ct_cache_lookups_total', { result: 'hit' })).toBe(8);
      expect(cached('ct_cache_lookups_total', { result: 'miss' })).toBe(0);
      expect(cached('ct_quota_reservations_total')).toBe(0);
      expect(cached('ct_upstream_requests_total')).toBe(0);
    });

    it('count refusals for quota, rate limit, authentication and plan', async () => {
      const poor = await service.organization({ monthlyLimit: 0 });
      const free = await service.organization({ plan: 'free' });
      const refused = await growth(async () => {
        await service.get('/channels/@fogsignalradio/transcripts', poor.key);
        await service.get('/channels/@fogsignalradio/transcripts', free.key);
        await service.request('GET', '/usage');
        await service.get('/usage', 'ctk_wrong');
      });
      await until(async () => sumOf(await scrape(service), 'ct_http_requests_total', { code: 'invalid_api_key' }) > 0);
      expect(refused('ct_quota_reservations_total', { outcome: 'refused' })).toBe(1);
      expect(refused('ct_failed_authentications_total', { reason: 'no_key' })).toBe(1);
      expect(refused('ct_failed_authentications_total', { reason: 'invalid_key' })).toBe(1);
      const samples = await scrape(service);
      for (const [status, code] of Object.entries({ 402: 'plan_limit_exceeded', 403: 'feature_not_in_plan' }))
        expect([code, sumOf(samples, 'ct_http_requests_total', { status, code })]).toEqual([code, 1]);
    });

    it('count calls in flight and calls refused by a limit', async () => {
      const [one, other, third] = [await busy.organization(), await busy.organization(), await busy.organization()];
      const hold = busy.fakeYoutube.hold({ kind: 'timedtext' }, 2);
      const path = '/channels/@1-videos-no-41/transcripts';
      const running = [busy.get(path, one.key), busy.get('/channels/@1-videos-no-42/transcripts', other.key)];
      await hold.arrived;
      await busy.get(path, one.key);
      await busy.get(path, third.key);
      for (let calls = 0; calls < 4; calls += 1) await busy.get('/usage', third.key);
      for (let calls = 0; calls < 21; calls += 1) await busy.request('GET', '/usage');
      const samples = await scrape(busy);
      expect(sumOf(samples, 'ct_calls_in_flight')).toBe(2);
      expect(sumOf(samples, 'ct_calls_in_flight_max')).toBe(2);
      expect(sumOf(samples, 'ct_upstream_requests_in_flight')).toBeGreaterThan(0);
      expect(sumOf(samples, 'ct_upstream_requests_in_flight_max')).toBe(16);
      for (const [reason, times] of Object.entries({
        key_in_flight: 1,
        process_in_flight: 1,
        key_per_minute: 2,
        failing_address: 1,
      }))
        expect([reason, sumOf(samples, 'ct_limit_refusals_total', { reason })]).toEqual([reason, times]);
      hold.release();
      await Promise.all(running);
      await until(async () => sumOf(await scrape(busy), 'ct_calls_in_flight') === 0);
    });

    it('count blocks by egress, and report that it is refused', async () => {
      const blocked = await startService({ environment: { UPSTREAM_RETRIES: 0 } });
      try {
        const { key } = await blocked.organization();
        blocked.fakeYoutube.setFaults({ kind: 'captcha', match: { kind: 'player' } });
        await blocked.get('/channels/@8-videos-no-43/transcripts', key);
        const samples = await scrape(blocked);
        expect(sumOf(samples, 'ct_entries_total', { outcome: 'upstream_blocked' })).toBe(8);
        expect(sumOf(samples, 'ct_upstream_blocks_total', { reason: 'captcha' })).toBeGreaterThanOrEqual(1);
        const finding = { exit: 'direct', use: 'video', finding: 'refused' };
        expect(sumOf(samples, 'ct_upstream_exit_findings_total', finding)).toBeGreaterThanOrEqual(1);
        expect(sumOf(samples, 'ct_upstream_breaker_open', { exit: 'direct', use: 'video' })).toBe(1);
        expect(sumOf(samples, 'ct_upstream_breaker_open', { exit: 'direct', use: 'channel' })).toBe(0);
        expect(sumOf(samples, 'ct_upstream_exit_resting', { exit: 'direct' })).toBe(0);
      } finally {
        await blocked.close();
      }
    });

    it('count responses whose client disconnected', async () => {
      const { key } = await service.organization();
      const hold = service.fakeYoutube.hold({ kind: 'timedtext' });
      const reader = new AbortController();
      const headers = { Authorization: `Bearer ${key}` };
      const left = fetch(`${service.url}/channels/@1-videos-no-47/transcripts`, { headers, signal: reader.signal });
      await hold.arrived;
      await left;
      reader.abort();
      await until(async () => sumOf(await scrape(service), 'ct_http_responses_unfinished_total') === 1);
      hold.release();
      expect(sumOf(await scrape(service), 'ct_http_responses_unfinished_total', { route: TRANSCRIPTS })).toBe(1);
    });

    it('report that the database is unavailable, and are still served', async () => {
      const { key } = await service.organization();
      service.link.cut();
      const grown = await growth(() => service.get('/usage', key));
      expect(grown('ct_http_requests_total', { route: '/usage', status: '503', code: 'service_unavailable' })).toBe(1);
      await until(async () => sumOf(await scrape(service), 'ct_dependency_up', { dependency: 'database' }) === 0);
      service.link.join();
      await until(async () => sumOf(await scrape(service), 'ct_dependency_up', { dependency: 'database' }) === 1);
    });
  });

  describe('a label of a metric', () => {
    it('never contains input of a caller: no path, no key, no address, no video', async () => {
      const { id, keyId, key } = await service.organization();
      const odd = [
        '/nowhere-at-all',
        '/channels/@tidewater',
        '/admin/organizations/org_x',
        '/docs/swagger-ui.css',
        '/%zz',
      ];
      for (const path of [...odd, '/channels/@no-such-channel/transcripts', `/channels/${key}/transcripts`])
        await service.get(path, key);
      await service.get('/channels/https://www.youtube.com/@tidewater/transcripts?limit=2', key);
      await service.request('PROPFIND', '/usage');
      await until(async () => sumOf(await scrape(service), 'ct_http_requests_total', { method: 'other' }) === 1);
      const { text } = await service.request('GET', '/metrics');
      for (const secret of [
        'nowhere',
        'tidewater',
        'no-such',
        'org_',
        key,
        key.slice(10),
        id,
        keyId,
        '127.0.0.1',
        'youtube.com',
      ])
        expect([secret, text.includes(secret)]).toEqual([secret, false]);
      const routes = new Set((await scrape(service)).flatMap(({ labels: { route } }) => route ?? []));
      const documented = Object.keys((await service.request('GET', '/docs-json')).body.paths as object);
      expect([...routes].filter((route) => ![...documented, '/docs', 'other'].includes(route))).toEqual([]);
      expect([...routes]).toEqual(expect.arrayContaining([TRANSCRIPTS, '/docs', 'other', '/usage']));
    });
  });

  describe('/metrics itself', () => {
    it('is not counted as API traffic, not rate limited, and not logged at the default level', async () => {
      const counted = async (): Promise<number> => sumOf(await scrape(busy), 'ct_http_requests_total');
      const before = await counted();
      for (let times = 0; times < 10 * RATE_LIMIT; times += 1) await scrape(busy);
      expect(await counted()).toBe(before);
      expect(busy.logs.filter((line) => line.includes('"/metrics"') && !line.includes('"debug"'))).toEqual([]);
    });

    it('requires the token when one is set', async () => {
      const token = 'a-metrics-token-of-the-tests-9d1c';
      const guarded = await startService({ environment: { METRICS_TOKEN: token } });
      try {
        const { key } = await guarded.organization();
        const wrong = [
          {},
          ...[`Bearer ${token}x`, `Bearer ${key}`, `Basic ${token}`].map((Authorization) => ({ Authorization })),
        ];
        for (const headers of wrong) {
          const response = await guarded.request('GET', '/metrics', headers);
          expect([response.status, response.headers['www-authenticate']]).toEqual([401, 'Bearer']);
          expect(response.body.error).toMatchObject({ code: 'unauthorized', retryable: false });
          expect(response.text).not.toContain('ct_');
        }
        expect(sumOf(await scrape(guarded, { Authorization: `Bearer ${token}` }), 'ct_build_info')).toBe(1);
        expect(guarded.logs.join('')).not.toContain(token);
      } finally {
        await guarded.close();
      }
    });
  });
});

describe('an alert rule', () => {
  interface Rule {
    alert: string;
    expr: string;
    for: string;
    labels: { severity: string };
    annotations: { summary: string; description: string; runbook_url: string };
  }
  const PROJECT = join(import.meta.dirname, '../..');
  const { groups } = parse(readFileSync(join(PROJECT, 'deploy/alerts.yml'), 'utf8')) as { groups: { rules: Rule[] }[] };
  const rules = groups.flatMap((group) => group.rules);
  /** The labels that Prometheus adds to every series, and the one series that it generates itself. */
  const OF_PROMETHEUS = { labels: ['job', 'instance'], metric: 'up' };
  const run = promisify(execFile);
  const PROMTOOL = 'promtool';
  const TESTS_FILE = join(PROJECT, 'deploy/alerts.test.yml');
  const promtoolIsInstalled = spawnSync(PROMTOOL, ['--version']).error === undefined;
  // Continuous integration installs it, so a missing promtool fails there.
  /** Runs while the service of these tests starts. */
  const ruleTests = promtoolIsInstalled ? run(PROMTOOL, ['test', 'rules', TESTS_FILE]) : undefined;
  // Reported by the test.
  ruleTests?.catch(() => undefined);
  const describeWithPromtool = promtoolIsInstalled || process.env['CI'] !== undefined ? describe : describe.skip;
  const suffix = promtoolIsInstalled ? '' : ' (needs promtool: apt-get install prometheus)';

  interface RuleTest {
    name: string;
    promql_expr_test: { exp_samples: { labels: string }[] }[];
  }
  let service: TestService;
  let samples: Sample[];

  beforeAll(async () => {
    const oidc = { OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_AUDIENCE: 'channel-transcripts' };
    service = await startService({ environment: { UPSTREAM_RETRIES: 0, ...oidc } });
    const { key } = await service.organization();
    await service.get('/channels/@tidewater/transcripts', key);
    service.fakeYoutube.setFaults({ kind: 'captcha' });
    await service.get('/channels/@1-videos-no-51/transcripts', key);
    await until(async () => sumOf(await scrape(service), 'ct_http_requests_total') === 2);
    samples = await scrape(service);
  });
  afterAll(() => service.close());

  describeWithPromtool(`the unit tests of the alert rules${suffix}`, () => {
    it('pass', async () => {
      await (ruleTests ?? run(PROMTOOL, ['test', 'rules', TESTS_FILE]));
    });

    it('show of every alert when it fires and when it does not', () => {
      const { tests } = parse(readFileSync(TESTS_FILE, 'utf8')) as { tests: RuleTest[] };
      expect(tests.map(({ name }) => name)).toEqual(rules.map(({ alert }) => alert));
      for (const { name, promql_expr_test: steps } of tests) {
        const firing = steps.map(({ exp_samples: expected }) => expected.map(({ labels }) => labels));
        expect([name, firing]).toEqual([name, expect.arrayContaining([[], [`{alertname="${name}"}`]])]);
      }
    });
  });

  it('has a unique name, a severity, a summary and a description', () => {
    expect(rules.length).toBeGreaterThan(10);
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, labels, annotations, for: wait } of rules) {
      expect([alert, labels.severity]).toEqual([alert, expect.stringMatching(/^(critical|warning)$/)]);
      expect([alert, wait]).toEqual([alert, expect.stringMatching(/^\d+m$/)]);
      expect(annotations.summary.length).toBeGreaterThan(10);
      expect(annotations.description.length).toBeGreaterThan(10);
    }
  });

  it.each(rules)('$alert links to an existing section of its runbook', ({ annotations }) => {
    const [file = '', anchor] = annotations.runbook_url.split('#');
    expect(existsSync(join(PROJECT, file))).toBe(true);
    const text = readFileSync(join(PROJECT, file), 'utf8');
    const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} -]/gu, '')
        .replaceAll(' ', '-'),
    );
    expect(headings).toContain(anchor);
  });

  it.each(rules)('$alert uses only metrics, labels and label values that a running service exports', (rule) => {
    const wanted = metricsIn(rule.expr);
    expect(wanted.length).toBeGreaterThan(0);
    for (const { metric, matchers, grouping } of wanted) {
      if (metric === OF_PROMETHEUS.metric) continue;
      const shown = samples.filter(({ name }) => name === metric);
      expect([metric, shown.length > 0]).toEqual([metric, true]);
      const labels = new Set([...OF_PROMETHEUS.labels, ...shown.flatMap((sample) => Object.keys(sample.labels))]);
      for (const label of grouping) expect([metric, label, labels.has(label)]).toEqual([metric, label, true]);
      for (const { label, matches } of matchers) {
        const values = shown.map((sample) => sample.labels[label]);
        expect([metric, label, values.some((value) => value !== undefined && matches(value))]).toEqual([
          metric,
          label,
          true,
        ]);
      }
    }
  });

  it('is parsed into its metrics, matchers and groupings, so that unknown ones are detected', () => {
    const [first, ...others] = metricsIn('sum by (job, le) (rate(a_total{b="c",d=~"e|f"}[5m])) / on (g) h > 1.5e9');
    expect(others).toEqual([{ metric: 'h', matchers: [], grouping: ['job', 'le', 'g'] }]);
    expect(first?.matchers.map(({ label, matches }) => [label, ...['c', 'f', 'x'].map(matches)])).toEqual([
      ['b', true, false, false],
      ['d', false, true, false],
    ]);
  });
});
