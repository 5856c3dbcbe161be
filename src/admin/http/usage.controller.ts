import { Body, Controller, Get, HttpStatus, Param, Post, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Actor } from '../../domain/caller.js';
import { ApiErrors, BODY_ERRORS, invalidField, unknownParameter } from '../../http/error-docs.js';
import { ApiResult } from '../../http/response-docs.js';
import { NoParameters } from '../../http/validation.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { QuotaService } from '../../quota/quota.service.js';
import { UsageReports } from '../../quota/usage-report.js';
import { Pruned, UsageRetention } from '../../quota/usage-retention.js';
import { ADMIN_DISABLED, AdminRoutes, ApiOrganizationId, Operator, ORGANIZATION_NOT_FOUND } from './admin-route.js';
import { UsageQueryDto } from './dto/requests.dto.js';
import { ADMIN_USAGE, AdminUsageDto, PRUNED } from './dto/responses.dto.js';

/** Retrieves, verifies and prunes usage. */
@Controller('admin')
@AdminRoutes()
export class AdminUsageController {
  constructor(
    private readonly organizations: OrganizationsService,
    private readonly quota: QuotaService,
    private readonly reports: UsageReports,
    private readonly retention: UsageRetention,
  ) {}

  @Get('organizations/:id/usage')
  @ApiOrganizationId()
  @ApiOperation({
    operationId: 'getOrganizationUsage',
    summary: 'Retrieve the quota usage of an organization',
    description:
      'Returns the usage of the current calendar month and, with `verify=true`, compares the count of every month with the ' +
      'sum of its settled calls. With `from`, `to` or `by` it adds a report of what was charged, whose rows add up to those counts. The usage of a deleted organization remains available, for invoicing.',
  })
  @ApiResult(HttpStatus.OK, AdminUsageDto, 'The usage of the current calendar month.', ADMIN_USAGE)
  @ApiErrors(invalidField('from', 'from must be a day such as 2026-10-31.'), ORGANIZATION_NOT_FOUND)
  async usage(@Param('id') id: string, @Query() { verify, ...range }: UsageQueryDto): Promise<AdminUsageDto> {
    const { id: organizationId } = await this.organizations.get(id, { deleted: true });
    const usage = await this.quota.usage(organizationId, { deleted: true });
    const { from, to, by } = range;
    const reported = from !== undefined || to !== undefined || by !== undefined;
    return {
      ...usage,
      ...(verify === 'true' && { verification: await this.quota.verify(organizationId) }),
      ...(reported && { report: await this.reports.report(organizationId, range, usage.period) }),
    };
  }

  @Post('usage/prune')
  @ApiOperation({
    operationId: 'pruneUsage',
    summary: 'Prune old usage',
    description: 'Removes the usage and the settled calls of months older than `USAGE_RETENTION_MONTHS`.',
  })
  @ApiResult(HttpStatus.OK, Pruned, 'What was removed.', PRUNED)
  @ApiErrors(unknownParameter('months'), ADMIN_DISABLED, ...BODY_ERRORS)
  async prune(@Body() _body: NoParameters, @Query() _query: NoParameters, @Operator() actor: Actor): Promise<Pruned> {
    return this.retention.prune(actor);
  }
}
