import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { isFinished, JOB_STATES, TRANSITIONS, type Transitions } from './job-states.js';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/jobs.md'), 'utf8');

it('the diagram of docs/jobs.md has the transitions of the table', () => {
  const drawn = [...PAGE.matchAll(/^ {4}(\w+) --> (\w+): (.+)$/gm)].flatMap(([, from, to, causes = '']) =>
    causes.split(', ').map((cause) => `${cause}: ${from} to ${to}`),
  );
  const known = Object.entries<Transitions>(TRANSITIONS).flatMap(([cause, changes]) =>
    Object.entries(changes).flatMap(([from, states]) => states.map((to) => `${cause}: ${from} to ${to}`)),
  );
  expect(drawn.sort()).toEqual(known.sort());
});

it('finished jobs are those that nothing but a resume changes', () => {
  expect(JOB_STATES.filter(isFinished)).toEqual(['completed', 'canceled', 'failed']);
});
