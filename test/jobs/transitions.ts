import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestService } from '../harness/service.js';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/jobs.md'), 'utf8');

/** The transitions of a diagram in docs/jobs.md, as `slice: running to paused`, sorted. */
export function drawnTransitions(of: 'a job' | 'a subscription'): string[] {
  const [, diagram = ''] = new RegExp(`The states of ${of}:\\n+\`\`\`mermaid([^\`]+)`).exec(PAGE) ?? [];
  const transitions = [...diagram.matchAll(/^ {4}(\w+) --> (\w+): (.+)$/gm)].flatMap(([, from, to, causes = '']) =>
    causes.split(', ').map((cause) => `${cause}: ${from} to ${to}`),
  );
  return transitions.sort();
}

/** The transitions that a service has logged so far, each once, in the form of `drawnTransitions`. */
export function loggedTransitions(
  service: TestService,
  event: 'job_state_changed' | 'subscription_state_changed',
): string[] {
  const lines = service.logs.map((line) => JSON.parse(line) as Record<string, string>);
  const changes = lines.filter((line) => line['event'] === event);
  return [...new Set(changes.map(({ by, from, to }) => `${by}: ${from} to ${to}`))].sort();
}
