import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { JobRun } from './job-run.js';
import { LEASES_SECONDS, SliceSteps } from './slice-steps.js';

const RUNS = 6;
/** Two slices: the first has 25 videos. */
const VIDEOS = 30;

let steps: SliceSteps;

beforeAll(async () => {
  steps = await SliceSteps.start();
});
afterAll(() => steps.service.close());

const operation = fc.oneof(
  { weight: 6, arbitrary: fc.constant('slice' as const) },
  { weight: 2, arbitrary: fc.constant('kill' as const) },
  { weight: 2, arbitrary: fc.constant('lose' as const) },
  { weight: 2, arbitrary: fc.constant('stop' as const) },
  { weight: 1, arbitrary: fc.constantFrom('cancel', 'resume', 'sweep', 'raise', 'pass') },
);

it('counts and charges each video once in any sequence of slices, kills, lost claims, cancels, resumes and quota edges', async () => {
  // Each run has a channel of its own, because what a run has fetched is free to the next one.
  let channel = 30;
  await fc.assert(
    fc.asyncProperty(
      fc.array(operation, { minLength: 4, maxLength: 14 }),
      fc.integer({ min: 0, max: VIDEOS + 10 }),
      async (operations, monthlyLimit) => {
        const organization = await steps.service.organization({ monthlyLimit });
        const run = await JobRun.create(steps.service, organization, `@mixed-${VIDEOS}x${channel++}`);
        for (const each of operations) {
          await apply(each, run);
          await run.verify();
        }
        await steps.service.app.get(OrganizationsService).change(organization.id, { monthlyLimit: 1_000 });
        await steps.pass(LEASES_SECONDS);
        await apply('resume', run);
        await untilCompleted(run);
        const { summary } = await run.verify();
        expect(summary).toMatchObject({ total: VIDEOS, pending: 0 });
        expect(new Set((await run.entries()).map(({ entry }) => entry.videoId)).size).toBe(VIDEOS);
      },
    ),
    { numRuns: RUNS, endOnFailure: true },
  );
});

async function apply(operation: string, run: JobRun): Promise<void> {
  switch (operation) {
    case 'slice':
      await steps.step();
      return;
    case 'kill':
    case 'lose': {
      const slice = await steps.claim();
      if (slice?.kind !== 'videos') {
        if (slice) await steps.run(slice);
        return;
      }
      const reading = operation === 'lose' ? steps.run(slice) : steps.read(slice);
      await steps.pass(LEASES_SECONDS);
      const other = operation === 'lose' ? await steps.claim() : undefined;
      await reading;
      if (other) await steps.run(other);
      return;
    }
    case 'stop': {
      const slice = await steps.claim();
      const stop = new AbortController();
      const running = slice && steps.run(slice, stop.signal);
      setTimeout(() => stop.abort(), 5);
      await running;
      return;
    }
    case 'cancel':
      await run.cancel().catch(() => undefined);
      return;
    case 'resume':
      await run.resume().catch(() => undefined);
      return;
    case 'sweep':
      await steps.sweep();
      return;
    case 'raise':
      await steps.service.app.get(OrganizationsService).change(run.organization.id, { monthlyLimit: VIDEOS });
      return;
    default:
      await steps.pass(3_600);
  }
}

async function untilCompleted(run: JobRun): Promise<void> {
  for (let round = 0; round < 20 && (await run.get()).state !== 'completed'; round++) {
    await steps.finish();
    await steps.sweep();
    await steps.pass(7 * 3_600);
  }
  expect((await run.get()).state).toBe('completed');
}
