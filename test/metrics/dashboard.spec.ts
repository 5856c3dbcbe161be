import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { metricsIn } from './promql.js';

interface Panel {
  type: string;
  title: string;
  description: string;
  datasource: object;
  fieldConfig: { defaults: { unit: string } };
  targets: { expr: string }[];
}

const PROJECT = join(import.meta.dirname, '../..');
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };
/** Not of the service: Prometheus generates it for each target. */
const OF_PROMETHEUS = 'up';

const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
const { panels } = JSON.parse(read('deploy/grafana/dashboard.json')) as { panels: Panel[] };
const charts = panels.filter(({ type }) => type !== 'row');
const expressionsOf = ({ targets }: Panel): string[] => targets.map(({ expr }) => expr);

/** The metrics in the list of docs/monitoring.md; `…_queued` stands for the prefix of the name before it. */
function documented(): Set<string> {
  const names = new Set<string>();
  for (const [, item = ''] of read('docs/monitoring.md').matchAll(/^- (`ct_[^(:]+)/gm)) {
    const [first = '', ...more] = [...item.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    names.add(first);
    for (const name of more) {
      if (!name.startsWith('…')) names.add(name);
      else names.add(name.replace('…', first.slice(0, first.lastIndexOf('_in_flight'))));
    }
  }
  return names;
}

describe('the dashboard', () => {
  it('uses only metrics that docs/monitoring.md describes', () => {
    const known = documented();
    expect(known.size).toBeGreaterThan(35);
    for (const panel of charts) {
      for (const { metric } of expressionsOf(panel).flatMap(metricsIn)) {
        if (metric === OF_PROMETHEUS || /^(process|nodejs)_/.test(metric)) continue;
        const name = metric.replace(/_bucket$/, '');
        expect([panel.title, name, known.has(name)]).toEqual([panel.title, name, true]);
      }
    }
  });

  it('shows every metric that docs/monitoring.md describes', () => {
    const shown = charts.flatMap(expressionsOf).flatMap(metricsIn);
    const names = new Set(shown.map(({ metric }) => metric.replace(/_bucket$/, '')));
    expect([...documented()].filter((name) => !names.has(name))).toEqual([]);
  });

  it('selects the chosen job and processes in every query', () => {
    for (const { title, targets } of charts) {
      for (const { expr } of targets) {
        const selectors = expr.match(/\b(?:ct|process|nodejs)_\w+|\bup\b/g) ?? [];
        const selected = expr.match(/\{job="\$job",instance=~"\$instance"/g) ?? [];
        expect([title, selected.length]).toEqual([title, selectors.length]);
      }
    }
  });

  it.each(charts)('has a unit, a description, queries and the chosen data source in the panel $title', (panel) => {
    expect(panel.fieldConfig.defaults.unit).toMatch(/^(reqps|ops|s|bytes|percentunit|short|bool_on_off)$/);
    expect(panel.description).toMatch(/^[A-Z0-9a-z].{20,}\.$/);
    expect(panel.datasource).toEqual(DATASOURCE);
    expect(panel.targets.length).toBeGreaterThan(0);
  });
});
