import { Option, type Command } from 'commander';
import { JOB_STATES, type JobState } from '../../jobs/job.js';
import type { JobStats, OperatedJob } from '../../jobs/job-overview.js';
import { allItems } from './input.js';
import { labelled, table, type CommandResult, type RunWork } from './output.js';

/** Adds `job list`, `job show`, `job cancel` and `job stats`. */
export function addJobCommands(program: Command, run: RunWork): void {
  const job = program.command('job').description('list, show and cancel archive jobs, and show their work');

  job
    .command('list')
    .description('list archive jobs, newest first')
    .option('--organization <org>', 'ID or name; only the ID for a deleted organization (default: all)')
    .addOption(new Option('--state <state>', 'state of the jobs (default: all)').choices(JOB_STATES))
    .action(({ organization, state }: { organization?: string; state?: JobState }) =>
      run(async ({ organizations, overview }) => {
        const organizationId =
          organization === undefined ? undefined : (await organizations.findIncludingDeleted(organization)).id;
        return listResult(await allItems((page) => overview.list({ organizationId, state }, page)));
      }),
    );

  job
    .command('show')
    .description('show an archive job')
    .argument('<job-id>')
    .action((id: string) => run(async ({ overview }) => jobResult(await overview.get(id))));

  job
    .command('cancel')
    .description('cancel an archive job; what was fetched stays charged and available')
    .argument('<job-id>')
    .action((id: string) =>
      run(async ({ overview, jobs }) => {
        const { organizationId } = await overview.get(id);
        await jobs.cancel(organizationId, id);
        return jobResult(await overview.get(id));
      }),
    );

  job
    .command('stats')
    .description('show the jobs by state, the slices that are due, and the jobs that do not move')
    .action(() => run(async ({ overview }) => statsResult(await overview.stats())));
}

const JOB_COLUMNS = ['ID', 'ORGANIZATION', 'STATE', 'REASON', 'CHANNEL', 'DONE', 'TOTAL', 'CREATED'];

function jobRow({ id, organizationId, state, reason, request, summary, createdAt }: OperatedJob) {
  const done = summary.succeeded + summary.failed;
  return [id, organizationId, state, reason, request.channel, done, summary.total, createdAt];
}

function listResult(jobs: readonly OperatedJob[]): CommandResult {
  return { json: jobs, text: table(JOB_COLUMNS, jobs.map(jobRow)) };
}

function jobResult(job: OperatedJob): CommandResult {
  const { request, summary, channel } = job;
  const { total, succeeded, failed, pending, fetched, cached } = summary;
  return {
    json: job,
    text: labelled([
      ['id', job.id],
      ['organization', job.organizationId],
      ['key', job.keyId],
      ['state', job.reason === null ? job.state : `${job.state} (${job.reason})`],
      ['channel', channel === null ? request.channel : `${channel.name} (${channel.id})`],
      ['languages', request.languages.length === 0 ? 'original' : request.languages.join(',')],
      ['limit', request.limit],
      ['since', request.since],
      ['when the quota is used up', request.onQuota],
      ['videos', `${total}: ${succeeded} succeeded, ${failed} failed, ${pending} pending`],
      ['charged', `${fetched} fetched, ${cached} cached and free`],
      ['created', job.createdAt],
      ['started', job.startedAt],
      ['finished', job.finishedAt],
      ['results until', job.expiresAt],
      ['overdue', job.overdueSeconds === null ? null : `${job.overdueSeconds} s`],
    ]),
  };
}

function statsResult(stats: JobStats): CommandResult {
  const { jobs, slices, pendingVideos, storedBytes, stuck } = stats;
  const values = labelled([
    ...JOB_STATES.map((state) => [state, jobs[state]] as const),
    ['slices running', slices.running],
    ['slices due', slices.due],
    ['oldest due', `${slices.oldestDueSeconds} s`],
    ['pending videos', pendingVideos],
    ['stored results', `${(storedBytes / 1024 / 1024).toFixed(1)} MB`],
  ]);
  const rows = stuck.map((job) => [...jobRow(job), job.overdueSeconds]);
  const moving =
    stuck.length === 0
      ? 'Every job whose slice is due for more than 5 minutes is being worked on.'
      : `Jobs that do not move although they are due:\n${table([...JOB_COLUMNS, 'OVERDUE SECONDS'], rows)}`;
  return { json: stats, text: `${values}\n\n${moving}` };
}
