import { Controller, Get, HttpStatus, Param, Post, Query, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import type { Actor } from '../../domain/caller.js';
import { invalidField } from '../../domain/errors.js';
import { ApiErrors } from '../../http/errors/error-docs.js';
import { ApiResult, contentOf, refTo } from '../../http/routes/response-docs.js';
import { ApiJobId, NOT_CANCELABLE } from '../../jobs/dto/api-jobs.js';
import { CANCELED_JOB_EXAMPLE, JobDto, JOBS_PAGE_EXAMPLE, JobsPageDto } from '../../jobs/dto/job.dto.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { AUDIT_ENTRY, AuditPageDto, AuditTrail } from '../../audit/audit-trail.js';
import { UnknownCursorError } from '../../domain/page.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { QuotaService } from '../../quota/quota.service.js';
import { csvOf, UsageReport, UsageReports } from '../../quota/usage-report.js';
import { Pruned, UsageRetention } from '../../quota/usage-retention.js';
import { AdminRoutes, ApiOrganizationId, Operator, ORGANIZATION_NOT_FOUND } from './admin-route.js';
import { AuditQueryDto, PruneQueryDto, UsageQueryDto, UsageRangeDto, PageQueryDto } from './dto/requests.dto.js';
import { ADMIN_USAGE, AdminUsageDto, ALL_USAGE, PRUNED, EGRESSES } from './dto/responses.dto.js';
import { SUBSCRIPTIONS_PAGE_EXAMPLE, SubscriptionsPageDto } from '../../jobs/dto/subscription.dto.js';
import { SubscriptionsService } from '../../jobs/subscriptions.service.js';
import { EgressesDto, EgressStates } from '../../platform/egress-states.js';

const CSV = 'text/csv';

/** Reads and prunes usage, shows what organizations run and how the platform is reached, and lists what was changed. */
@Controller('admin')
@AdminRoutes()
export class AdminOperationsController {
  constructor(
    private readonly organizations: OrganizationsService,
    private readonly quota: QuotaService,
    private readonly reports: UsageReports,
    private readonly retention: UsageRetention,
    private readonly jobs: JobsService,
    private readonly subscriptions: SubscriptionsService,
    private readonly audit: AuditTrail,
    private readonly states: EgressStates,
  ) {}

  @Get('organizations/:id/usage')
  @ApiOrganizationId()
  @ApiOperation({
    summary: 'Retrieve the quota usage of an organization',
    description:
      'Returns the usage of the current calendar month and, with `verify=true`, compares the count of every month with the ' +
      'sum of its settled calls. With `from`, `to` or `by` it adds a report of what was charged, whose rows add up to those counts. The usage of a deleted organization remains available, for invoicing.',
  })
  @ApiResult(HttpStatus.OK, AdminUsageDto, 'The usage of the current calendar month.', ADMIN_USAGE)
  @ApiErrors(invalidField('from', 'from must be a day such as 2026-10-31.'))
  async getOrganizationUsage(
    @Param('id') id: string,
    @Query() { verify, ...range }: UsageQueryDto,
  ): Promise<AdminUsageDto> {
    const { id: organizationId } = await this.organizations.get(id, { deleted: true });
    const usage = await this.quota.usage(organizationId);
    const { from, to, by } = range;
    const reported = from !== undefined || to !== undefined || by !== undefined;
    return {
      ...usage,
      ...(verify === 'true' && { verification: await this.quota.verify(organizationId) }),
      ...(reported && { report: await this.reports.report(organizationId, range) }),
    };
  }

  @Get('usage')
  @ApiOperation({
    summary: 'Report what all organizations were charged',
    description: 'Returns a row for each organization, deleted ones included, with its API keys, for invoicing.',
  })
  @ApiOkResponse({
    description: 'The report. With `Accept: text/csv` as CSV.',
    ...contentOf(
      { schema: refTo(UsageReport), example: ALL_USAGE },
      { [CSV]: { schema: { type: 'string' }, example: csvOf(ALL_USAGE) } },
    ),
  })
  @ApiErrors(invalidField('from', 'from must be a day such as 2026-10-31.'))
  async getAllUsage(@Query() range: UsageRangeDto, @Req() request: Request, @Res() response: Response): Promise<void> {
    const report = await this.reports.reportAll(range);
    response.vary('Accept').type(request.accepts(['application/json', CSV]) || 'application/json');
    response.send(response.get('Content-Type')?.startsWith(CSV) ? csvOf(report) : JSON.stringify(report));
  }

  @Post('usage/prune')
  @ApiOperation({
    summary: 'Prune old usage',
    description:
      'Removes the usage and the settled calls of months older than `USAGE_RETENTION_MONTHS`, for about ten seconds. Repeat the request with `after` set to the `next` of the response until that is null.',
  })
  @ApiResult(HttpStatus.OK, Pruned, 'What was removed.', PRUNED)
  @ApiErrors(new UnknownCursorError('x'))
  async pruneUsage(@Query() { after }: PruneQueryDto, @Operator() actor: Actor): Promise<Pruned> {
    return this.retention.prune(actor, after);
  }

  @Post('jobs/:id/cancel')
  @ApiJobId('job', 'The job does not exist')
  @ApiOperation({
    summary: 'Cancel an archive job of any organization',
    description:
      'What was fetched stays charged, and its results stay available. A job that is already canceled is returned unchanged.',
  })
  @ApiResult(HttpStatus.OK, JobDto, 'The canceled job.', CANCELED_JOB_EXAMPLE)
  @ApiErrors(NOT_CANCELABLE)
  async cancelAnyJob(@Param('id') id: string, @Operator() actor: Actor): Promise<JobDto> {
    return (await this.jobs.cancel(null, id, actor)).job;
  }

  @Get('audit')
  @ApiOperation({
    summary: 'List the changes made by operators and callers',
    description:
      'Returns who changed organizations, API keys and usage, or jobs, subscriptions, webhooks, feed links and the library, and what it was before. An ' +
      'entry is stored with the change itself, and for as long as usage (`USAGE_RETENTION_MONTHS`).',
  })
  @ApiResult(HttpStatus.OK, AuditPageDto, 'A page of changes, newest first.', { entries: [AUDIT_ENTRY], next: null })
  @ApiErrors(new UnknownCursorError('x'), ORGANIZATION_NOT_FOUND)
  async listAudit(@Query() { organization, limit, after }: AuditQueryDto): Promise<AuditPageDto> {
    const id = organization === undefined ? null : (await this.organizations.get(organization, { deleted: true })).id;
    const { items, next } = await this.audit.list(id, { limit, after });
    return { entries: items, next };
  }

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
