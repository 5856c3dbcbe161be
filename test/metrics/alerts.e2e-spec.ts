import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { scrape, sumOf, type Sample } from './exposition.js';
import { metricsIn } from './promql.js';

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

describe('an alert rule', () => {
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
