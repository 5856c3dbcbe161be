import { Body, Controller, HttpStatus, Param, Post, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Actor } from '../../domain/caller.js';
import { JobNotFoundError } from '../../domain/errors.js';
import { ApiErrors, BODY_ERRORS, unknownParameter } from '../../http/error-docs.js';
import { NoParameters } from '../../http/validation.js';
import { ApiJob, ApiJobId } from '../../jobs/dto/api-jobs.js';
import { CANCELED_JOB_EXAMPLE, JobDto } from '../../jobs/dto/job.dto.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { ADMIN_DISABLED, AdminRoutes, Operator } from './admin-route.js';

/** Cancels the archive jobs of all organizations. */
@Controller('admin/jobs')
@AdminRoutes()
export class AdminJobsController {
  constructor(private readonly jobs: JobsService) {}

  @Post(':id/cancel')
  @ApiJobId()
  @ApiOperation({
    operationId: 'cancelAnyJob',
    summary: 'Cancel an archive job of any organization',
    description:
      'What was fetched stays charged, and its results stay available. A job that is already canceled is returned unchanged.',
  })
  @ApiJob(HttpStatus.OK, 'The canceled job.', CANCELED_JOB_EXAMPLE)
  @ApiErrors(
    unknownParameter('force'),
    { title: 'The job does not exist', error: new JobNotFoundError() },
    ADMIN_DISABLED,
    'job_finished',
    ...BODY_ERRORS,
  )
  async cancel(
    @Param('id') id: string,
    @Body() _body: NoParameters,
    @Query() _query: NoParameters,
    @Operator() actor: Actor,
  ): Promise<JobDto> {
    return (await this.jobs.cancelAny(id, actor)).job;
  }
}
