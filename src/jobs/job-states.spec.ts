import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { isFinished, JOB_STATES, TRANSITIONS, type Transitions } from './job-states.js';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/jobs.md'), 'utf8');

// A subscription is neither queued nor listed, and does not finish by itself.
const SUBSCRIPTION_CHANGE = /^(?:slice|sweep|change|delete): (?:running|paused) to (?:running|paused|canceled)$/;

it.each([
  ['a job', /^(?!change)/],
  ['a subscription', SUBSCRIPTION_CHANGE],
] as const)('the diagram of %s in docs/jobs.md has the transitions of the table', (of, concerned) => {
  const [, diagram = ''] = new RegExp(`The states of ${of}:\\n+\`\`\`mermaid([^\`]+)`).exec(PAGE) ?? [];
  const drawn = [...diagram.matchAll(/^ {4}(\w+) --> (\w+): (.+)$/gm)].flatMap(([, from, to, causes = '']) =>
    causes.split(', ').map((cause) => `${cause}: ${from} to ${to}`),
  );
  const known = Object.entries<Transitions>(TRANSITIONS).flatMap(([cause, changes]) =>
    Object.entries(changes).flatMap(([from, states]) => states.map((to) => `${cause}: ${from} to ${to}`)),
  );
  expect(drawn.sort()).toEqual(known.filter((change) => concerned.test(change)).sort());
});

it('finished jobs are those that nothing but a resume changes', () => {
  expect(JOB_STATES.filter(isFinished)).toEqual(['completed', 'canceled', 'failed']);
});
