import { Controller, Get, HttpStatus, Param, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import { UnknownCursorError } from '../../domain/page.js';
import { ApiErrors } from '../../http/errors/error-docs.js';
import { ApiResult } from '../../http/routes/response-docs.js';
import { JOBS_PAGE_EXAMPLE, JobsPageDto } from '../../jobs/dto/job.dto.js';
import { SUBSCRIPTIONS_PAGE_EXAMPLE, SubscriptionsPageDto } from '../../jobs/dto/subscription.dto.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { SubscriptionsService } from '../../jobs/subscriptions.service.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { EgressesDto, EgressStates } from '../../platform/egress-states.js';
import { AdminRoutes, ApiOrganizationId } from './admin-route.js';
import { EGRESSES } from './dto/responses.dto.js';
import { PageQueryDto } from './dto/requests.dto.js';

/** Shows the jobs and subscriptions of an organization, and how the platform is reached. */
@Controller('admin')
@AdminRoutes()
export class AdminWorkController {
  constructor(
    private readonly organizations: OrganizationsService,
    private readonly jobs: JobsService,
    private readonly subscriptions: SubscriptionsService,
    private readonly states: EgressStates,
  ) {}

  @Get('organizations/:id/jobs')
  @ApiOrganizationId()
  @ApiOperation({ summary: 'List the archive jobs of an organization' })
  @ApiResult(HttpStatus.OK, JobsPageDto, 'A page of jobs, newest first.', JOBS_PAGE_EXAMPLE)
  @ApiErrors(new UnknownCursorError('job_x'))
  async listOrganizationJobs(@Param('id') id: string, @Query() page: PageQueryDto): Promise<JobsPageDto> {
    const { id: organizationId } = await this.organizations.get(id);
    return this.jobs.list(organizationId, page);
  }

  @Get('organizations/:id/subscriptions')
  @ApiOrganizationId()
  @ApiOperation({ summary: 'List the subscriptions of an organization' })
  @ApiResult(HttpStatus.OK, SubscriptionsPageDto, 'A page of subscriptions, newest first.', SUBSCRIPTIONS_PAGE_EXAMPLE)
  @ApiErrors(new UnknownCursorError('sub_x'))
  async listOrganizationSubscriptions(
    @Param('id') id: string,
    @Query() page: PageQueryDto,
  ): Promise<SubscriptionsPageDto> {
    const { id: organizationId } = await this.organizations.get(id);
    return this.subscriptions.list(organizationId, page);
  }

  @Get('egresses')
  @ApiOperation({
    summary: 'List the egresses',
    description:
      'Returns how the process that responds reaches YouTube: what is paused, how fast it sends, and what the last control said. ' +
      'Processes share none of it.',
  })
  @ApiResult(HttpStatus.OK, EgressesDto, 'The state of each egress.', EGRESSES)
  listEgresses(): EgressesDto {
    return { egresses: this.states.states() };
  }
}
