import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createCounter, createGauge } from './metrics-registry.js';

describe('a counter', () => {
  it('has a series at 0 for each combination of its label values', async () => {
    const registry = new Registry();
    createCounter(registry, 'ct_a_total', 'A.', { kind: ['x', 'y'], result: ['hit', 'miss'] });
    createCounter(registry, 'ct_b_total', 'B.');
    expect((await registry.metrics()).split('\n').filter((line) => line.startsWith('ct_'))).toEqual([
      'ct_a_total{kind="x",result="hit"} 0',
      'ct_a_total{kind="x",result="miss"} 0',
      'ct_a_total{kind="y",result="hit"} 0',
      'ct_a_total{kind="y",result="miss"} 0',
      'ct_b_total 0',
    ]);
  });
});

describe('a gauge', () => {
  it('is read at each scrape', async () => {
    const registry = new Registry();
    let value = 1;
    createGauge(registry, 'ct_c', 'C.', () => value);
    expect(await registry.metrics()).toContain('ct_c 1\n');
    value = 2;
    expect(await registry.metrics()).toContain('ct_c 2\n');
  });
});
