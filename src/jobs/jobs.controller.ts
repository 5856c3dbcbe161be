import {
  Body,
  Controller,
  Delete,
  Get,
  HttpCode,
  HttpStatus,
  Param,
  Patch,
  Post,
  Query,
  Req,
  Res,
} from '@nestjs/common';
import { ApiBody, ApiExtraModels, ApiNoContentResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { RequiresFeature } from '../auth/auth.decorators.js';
import { invalidField } from '../domain/errors.js';
import { payerOf } from '../transcripts/transcripts.service.js';
import { UnknownCursorError } from '../domain/page.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { ApiIdempotencyKey } from '../http/routes/idempotency-key.js';
import { requestContext } from '../http/server/request-context.js';
import { ApiResult } from '../http/routes/response-docs.js';
import { AllowsHead, BodyBytesMax } from '../http/routes/route.decorators.js';
import {
  ApiResults,
  CURSOR_UNKNOWN,
  idempotencyOf,
  locationOf,
  NOT_CANCELABLE,
  OnJob,
  OnJobs,
  organizationOf,
  RESULTS_EXPIRED,
  TOO_MANY_JOBS,
  TOO_MUCH_STORED,
} from './dto/api-jobs.js';
import {
  CANCELED_JOB_EXAMPLE,
  JobDto,
  JobRequestDto,
  JobResultsDto,
  JOBS_PAGE_EXAMPLE,
  JobsPageDto,
  NEW_JOB_EXAMPLE,
  RESULTS_EXAMPLE,
  RESULTS_LINES_EXAMPLE,
  RUNNING_JOB_EXAMPLE,
} from './dto/job.dto.js';
import {
  ChangeJobDto,
  CreateJobDto,
  JOB_BYTES_MAX,
  JobsQueryDto,
  NEW_JOB_BODIES,
  ResultsQueryDto,
} from './dto/jobs-request.dto.js';
import { JobFinishedError } from './job.js';
import { JobsService } from './jobs.service.js';
import { ResultsResponse } from './results/results-response.js';

/** Archive jobs. Only creating one needs a plan, so that a customer who changes the plan keeps the access to its results. */
@ApiTags('jobs')
@ApiExtraModels(JobRequestDto)
@Controller('jobs')
export class JobsController {
  constructor(
    private readonly jobs: JobsService,
    private readonly results: ResultsResponse,
  ) {}

  @Post()
  @RequiresFeature('channel_archives', { limitsConcurrency: false })
  @ApiOperation({
    summary: 'Create an archive job',
    description:
      'Fetches the transcripts of a channel, a playlist or up to 10,000 videos in the background. Requires the Pro plan. The list is taken ' +
      'once; then the videos are fetched in slices of up to 25, each of which reserves and charges quota like a call. Every video is charged ' +
      'once at most. Videos that can succeed later are tried again after 10 minutes, 1 hour and 6 hours. The results are available while the job runs.',
  })
  @BodyBytesMax(JOB_BYTES_MAX)
  @ApiIdempotencyKey('job')
  @ApiBody({ type: CreateJobDto, examples: NEW_JOB_BODIES })
  @ApiResult(
    HttpStatus.ACCEPTED,
    JobDto,
    'The new job, or the one that a request with the same key has created.',
    NEW_JOB_EXAMPLE,
    locationOf('job'),
  )
  @ApiErrors(
    invalidField('limit', 'limit must be an integer from 1 to 2147483647.'),
    'channel_not_found',
    'playlist_not_found',
    TOO_MANY_JOBS,
    TOO_MUCH_STORED,
  )
  async createJob(@Body() body: CreateJobDto, @Req() request: Request): Promise<JobDto> {
    const context = requestContext(request);
    const job = await this.jobs.create(body, payerOf(context), idempotencyOf(request), context.actor);
    context.log['jobId'] = job.id;
    context.setHeader('Location', `/jobs/${job.id}`);
    return job;
  }

  @Get()
  @AllowsHead()
  @OnJobs('job')
  @ApiOperation({
    summary: 'List archive jobs',
    description:
      'Lists the jobs of the organization, newest first, on every plan. Operations on existing jobs cost no quota and share a ' +
      'rate limit of their own: as many requests per minute as the other operations together, counted separately.',
  })
  @ApiResult(HttpStatus.OK, JobsPageDto, 'A page of jobs, newest first.', JOBS_PAGE_EXAMPLE)
  @ApiErrors(new UnknownCursorError(NEW_JOB_EXAMPLE.id))
  listJobs(@Query() page: JobsQueryDto, @Req() request: Request): Promise<JobsPageDto> {
    return this.jobs.list(requestContext(request).caller.organization.id, page);
  }

  @Get(':id')
  @AllowsHead()
  @OnJob('job')
  @ApiOperation({
    summary: 'Retrieve an archive job',
    description:
      'Returns the state and the counts of a job, on every plan. `checkAgainSeconds` states when to look again.',
  })
  @ApiResult(HttpStatus.OK, JobDto, 'The job.', RUNNING_JOB_EXAMPLE)
  getJob(@Param('id') id: string, @Req() request: Request): Promise<JobDto> {
    return this.jobs.get(organizationOf(request, 'job', id), id);
  }

  @Patch(':id')
  @OnJob('job')
  @ApiOperation({
    summary: 'Change whether an archive job is kept',
    description: 'Has the transcripts of a job in any state kept in the library, or no more of them, on every plan.',
  })
  @ApiResult(HttpStatus.OK, JobDto, 'The changed job.', { ...RUNNING_JOB_EXAMPLE, keep: 'on' })
  @ApiErrors(invalidField('keep', 'keep must be true or false.'))
  changeJob(@Param('id') id: string, @Body() { keep }: ChangeJobDto, @Req() request: Request): Promise<JobDto> {
    return this.jobs.change(organizationOf(request, 'job', id), id, keep, requestContext(request).actor);
  }

  @Post(':id/cancel')
  @OnJob('job')
  @ApiOperation({
    summary: 'Cancel an archive job',
    description:
      'Ends a job that has not finished, on every plan. What was fetched stays charged and its results stay available; the slice ' +
      'that is being fetched is still stored. A job that is already canceled is returned unchanged.',
  })
  @ApiResult(HttpStatus.OK, JobDto, 'The canceled job.', CANCELED_JOB_EXAMPLE)
  @ApiErrors(NOT_CANCELABLE)
  async cancelJob(@Param('id') id: string, @Req() request: Request): Promise<JobDto> {
    return (await this.jobs.cancel(organizationOf(request, 'job', id), id, requestContext(request).actor)).job;
  }

  @Post(':id/resume')
  @OnJob('job')
  @ApiOperation({
    summary: 'Resume an archive job',
    description:
      'Lets a paused, canceled or failed job go on where it ended; nothing is fetched or charged again. What is fetched from then ' +
      'on is charged to the API key that resumes it, and within its monthly limit. A job that is queued or ' +
      'running is returned unchanged. On a plan without archive jobs it pauses again with the reason `plan_changed`.',
  })
  @ApiResult(HttpStatus.OK, JobDto, 'The job.', RUNNING_JOB_EXAMPLE)
  @ApiErrors(
    { title: 'The job has already been completed', error: new JobFinishedError('resume', 'completed') },
    RESULTS_EXPIRED,
    TOO_MANY_JOBS,
    TOO_MUCH_STORED,
  )
  resumeJob(@Param('id') id: string, @Req() request: Request): Promise<JobDto> {
    return this.jobs.resume(organizationOf(request, 'job', id), id, requestContext(request).actor);
  }

  @Delete(':id')
  @HttpCode(HttpStatus.NO_CONTENT)
  @OnJob('job')
  @ApiOperation({
    summary: 'Delete an archive job',
    description:
      'Deletes a job in any state with its results, on every plan. What was fetched stays charged, also by the slice that is ' +
      'running: its transcripts are then cached. An unfinished job ends without an event for webhooks.',
  })
  @ApiNoContentResponse({ description: 'The job was deleted.' })
  async deleteJob(@Param('id') id: string, @Req() request: Request): Promise<void> {
    await this.jobs.delete(organizationOf(request, 'job', id), id, requestContext(request).actor);
  }

  @Get(':id/results')
  @OnJob('job', { limitsConcurrency: true })
  @ApiOperation({
    summary: 'The results of an archive job',
    description:
      'Returns the entries of a job in the order in which they became final, on every plan and also while the job runs. Each has ' +
      'its `position` in the list. To read on, request `after` with the `next` of the last response: no entry is missing or ' +
      'repeated. While `next` is not null there can be more, now or after `job.checkAgainSeconds`. NDJSON without `limit` has every ' +
      'entry so far. Results are deleted at `expiresAt`.',
  })
  @ApiResults(JobResultsDto, 'job', RESULTS_EXAMPLE, RESULTS_LINES_EXAMPLE)
  @ApiErrors(RESULTS_EXPIRED, CURSOR_UNKNOWN)
  getJobResults(
    @Param('id') id: string,
    @Query() query: ResultsQueryDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const organizationId = organizationOf(request, 'job', id);
    return this.results.send('job', (page) => this.jobs.results(organizationId, id, page), query, request, response);
  }
}
