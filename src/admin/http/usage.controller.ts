import { Body, Controller, Get, HttpStatus, Param, Post, Query, Req } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Request } from 'express';
import { ApiErrors } from '../../http/error-docs.js';
import { NoParameters } from '../../http/validation.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { QuotaService } from '../../quota/quota.service.js';
import { UsageRetention } from '../../quota/usage-retention.js';
import type { PrunedDocument, UsageDocument } from '../admin-views.js';
import {
  AdminRoutes,
  ApiBodyErrors,
  invalid,
  NO_SUCH_ORGANIZATION,
  NOT_THERE,
  NamesOrganization,
} from './admin-route.js';
import { PRUNED, USAGE } from './dto/responses.example.js';
import { AdminUsageSchema, PrunedSchema } from './dto/responses.dto.js';
import { ApiResult } from './api-response.decorator.js';
import { logChange } from './change-log.js';
import { VerifyQuery } from './dto/requests.dto.js';

/** Usage: look at it, recompute it, remove what is old. */
@Controller('admin')
@AdminRoutes()
export class AdminUsageController {
  constructor(
    private readonly organizations: OrganizationsService,
    private readonly quota: QuotaService,
    private readonly retention: UsageRetention,
  ) {}

  @Get('organizations/:id/usage')
  @NamesOrganization()
  @ApiOperation({
    operationId: 'getOrganizationUsage',
    summary: "An organization's quota in the current month, and on demand whether every month adds up",
    description: 'Answers for a deleted organization too, so that its last months can be invoiced (`verify=true`).',
  })
  @ApiResult(HttpStatus.OK, AdminUsageSchema, 'The counts as of now.', USAGE)
  @ApiErrors(invalid('verify', 'verify must be given once, as true or false.'), NO_SUCH_ORGANIZATION)
  async usage(@Param('id') id: string, @Query() { verify }: VerifyQuery): Promise<UsageDocument> {
    const { id: organizationId } = await this.organizations.getIncludingDeleted(id);
    const usage = await this.quota.usage(organizationId, { deleted: true });
    return verify === 'true' ? { ...usage, verification: await this.quota.verify(organizationId) } : usage;
  }

  @Post('usage/prune')
  @ApiOperation({
    operationId: 'pruneUsage',
    summary: 'Remove the months that are older than `USAGE_RETENTION_MONTHS`, with their calls',
  })
  @ApiResult(HttpStatus.OK, PrunedSchema, 'What was removed.', PRUNED)
  @ApiErrors(invalid('months', '"months" is not a parameter of this operation.'), NOT_THERE)
  @ApiBodyErrors()
  async prune(
    @Body() _body: NoParameters,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<PrunedDocument> {
    const document = await this.retention.prune();
    logChange(request, 'usage_pruned', { ...document });
    return document;
  }
}
