import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import {
  isFinished,
  isTransition,
  JOB_STATES,
  SUBSCRIPTION_TRANSITIONS,
  TRANSITIONS,
  type JobState,
  type Transitions,
} from './job-states.js';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/jobs.md'), 'utf8');

it.each([
  ['a job', TRANSITIONS],
  ['a subscription', SUBSCRIPTION_TRANSITIONS],
] as const)('the diagram of %s in docs/jobs.md has the transitions of the table', (of, table) => {
  const [, diagram = ''] = new RegExp(`The states of ${of}:\\n+\`\`\`mermaid([^\`]+)`).exec(PAGE) ?? [];
  const drawn = [...diagram.matchAll(/^ {4}(\w+) --> (\w+): (.+)$/gm)].flatMap(([, from, to, causes = '']) =>
    causes.split(', ').map((cause) => `${cause}: ${from} to ${to}`),
  );
  const known = Object.entries<Transitions>(table).flatMap(([cause, changes]) =>
    Object.entries(changes).flatMap(([from, states]) => states.map((to) => `${cause}: ${from} to ${to}`)),
  );
  expect(drawn.sort()).toEqual(known.sort());
});

it('finished jobs are those that nothing but a resume changes', () => {
  expect(JOB_STATES.filter(isFinished)).toEqual(['completed', 'canceled', 'failed']);
});

it('a job and a subscription have transitions of their own', () => {
  const both = (...change: [Parameters<typeof isTransition>[0], JobState, JobState]) => [
    isTransition(...change, false),
    isTransition(...change, true),
  ];
  expect(both('slice', 'running', 'completed')).toEqual([true, false]);
  expect(both('sweep', 'paused', 'listing')).toEqual([true, false]);
  expect(both('cancel', 'running', 'canceled')).toEqual([true, false]);
  expect(both('change', 'running', 'paused')).toEqual([false, true]);
  expect(both('slice', 'paused', 'running')).toEqual([true, true]);
});
