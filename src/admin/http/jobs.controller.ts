import { Body, Controller, Get, HttpStatus, Param, Post, Query, Req } from '@nestjs/common';
import { ApiOperation, ApiParam } from '@nestjs/swagger';
import type { Request } from 'express';
import { JobNotFoundError } from '../../domain/errors.js';
import { ApiErrors, BODY_ERRORS, invalidField, unknownParameter, type ErrorExample } from '../../http/error-docs.js';
import { ApiResult } from '../../http/response-docs.js';
import { NoParameters } from '../../http/validation.js';
import { JobOverview } from '../../jobs/job-overview.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { JOB_STATES } from '../../jobs/job.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { ADMIN_DISABLED, AdminRoutes, logChange, ORGANIZATION_NOT_FOUND } from './admin-route.js';
import {
  ADMIN_JOB,
  AdminJobDto,
  AdminJobsPageDto,
  AdminJobsQueryDto,
  CANCELED_ADMIN_JOB,
  JOB_STATS,
  JobStatsDto,
} from './dto/jobs.dto.js';

const JOB_NOT_FOUND: ErrorExample = {
  title: 'The job does not exist',
  error: new JobNotFoundError(),
};

function ApiJobId(): MethodDecorator {
  return ApiParam({
    name: 'id',
    description: 'The ID of the job (`job_…`).',
    schema: { type: 'string', example: ADMIN_JOB.id },
  });
}

/** Lists, retrieves and cancels the archive jobs of all organizations. */
@Controller('admin/jobs')
@AdminRoutes()
export class AdminJobsController {
  constructor(
    private readonly overview: JobOverview,
    private readonly jobs: JobsService,
    private readonly organizations: OrganizationsService,
  ) {}

  @Get()
  @ApiOperation({ operationId: 'listAllJobs', summary: 'List the archive jobs of all organizations' })
  @ApiResult(HttpStatus.OK, AdminJobsPageDto, 'A page of jobs, newest first.', { jobs: [ADMIN_JOB], next: null })
  @ApiErrors(
    invalidField('state', `state must be one of ${JOB_STATES.join(', ')}, given once.`),
    ORGANIZATION_NOT_FOUND,
  )
  async list(@Query() { limit: count, after, organization, state }: AdminJobsQueryDto): Promise<AdminJobsPageDto> {
    const organizationId =
      organization === undefined ? undefined : (await this.organizations.getIncludingDeleted(organization)).id;
    const { items, next } = await this.overview.list({ organizationId, state }, { count, after });
    return { jobs: items, next };
  }

  @Get('stats')
  @ApiOperation({
    operationId: 'getJobStats',
    summary: 'Retrieve the work of the archive jobs',
    description:
      'Returns the jobs by state, the slices that are due, the size of the results, and the jobs that do not move.',
  })
  @ApiResult(HttpStatus.OK, JobStatsDto, 'The work of the jobs of all organizations.', JOB_STATS)
  @ApiErrors(unknownParameter('state'), ADMIN_DISABLED)
  stats(@Query() _query: NoParameters): Promise<JobStatsDto> {
    return this.overview.stats();
  }

  @Get(':id')
  @ApiJobId()
  @ApiOperation({ operationId: 'getAnyJob', summary: 'Retrieve an archive job of any organization' })
  @ApiResult(HttpStatus.OK, AdminJobDto, 'The job.', ADMIN_JOB)
  @ApiErrors(unknownParameter('month'), JOB_NOT_FOUND, ADMIN_DISABLED)
  get(@Param('id') id: string, @Query() _query: NoParameters): Promise<AdminJobDto> {
    return this.overview.get(id);
  }

  @Post(':id/cancel')
  @ApiJobId()
  @ApiOperation({
    operationId: 'cancelAnyJob',
    summary: 'Cancel an archive job of any organization',
    description:
      'What was fetched stays charged, and its results stay available. A job that is already canceled is returned unchanged.',
  })
  @ApiResult(HttpStatus.OK, AdminJobDto, 'The canceled job.', CANCELED_ADMIN_JOB)
  @ApiErrors(unknownParameter('force'), JOB_NOT_FOUND, ADMIN_DISABLED, 'job_finished')
  @ApiErrors(...BODY_ERRORS)
  async cancel(
    @Param('id') id: string,
    @Body() _body: NoParameters,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<AdminJobDto> {
    const { organizationId, state } = await this.overview.get(id);
    await this.jobs.cancel(organizationId, id);
    if (state !== 'canceled') logChange(request, 'job_canceled', { organizationId, jobId: id });
    return this.overview.get(id);
  }
}
