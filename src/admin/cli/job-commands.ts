import type { Command } from 'commander';
import { CLI_ACTOR } from '../../domain/caller.js';
import type { RunWork } from './output.js';

/** Adds `job cancel`. */
export function addJobCommands(program: Command, run: RunWork): void {
  program
    .command('job')
    .description('cancel archive jobs')
    .command('cancel')
    .description('cancel a job of any organization; what was fetched stays charged and available')
    .argument('<job-id>')
    .action((id: string) =>
      run(async ({ jobs }) => {
        const { job, organizationId } = await jobs.cancelAny(id, CLI_ACTOR);
        const { state, summary } = job;
        const fetched = `${summary.fetched} of ${summary.total} videos were fetched and charged`;
        return { json: { ...job, organizationId }, text: `Job ${id} of ${organizationId} is ${state}: ${fetched}.` };
      }),
    );
}
