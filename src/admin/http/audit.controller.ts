import { Controller, Get, HttpStatus, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import { ApiErrors } from '../../http/error-docs.js';
import { ApiResult } from '../../http/response-docs.js';
import { AuditTrail } from '../../organizations/audit-trail.js';
import { UnknownCursorError } from '../../organizations/organization-errors.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { AdminRoutes, ORGANIZATION_NOT_FOUND } from './admin-route.js';
import { AuditQueryDto } from './dto/requests.dto.js';
import { AUDIT_ENTRY, AuditPageDto } from './dto/responses.dto.js';

/** Lists what operators changed. */
@Controller('admin/audit')
@AdminRoutes()
export class AdminAuditController {
  constructor(
    private readonly organizations: OrganizationsService,
    private readonly audit: AuditTrail,
  ) {}

  @Get()
  @ApiOperation({
    operationId: 'listAudit',
    summary: 'List the changes made by operators',
    description:
      'Returns who changed organizations, API keys, jobs and usage, over HTTP or by a command, and what it was before. An ' +
      'entry is stored with the change itself, and for as long as usage (`USAGE_RETENTION_MONTHS`).',
  })
  @ApiResult(HttpStatus.OK, AuditPageDto, 'A page of changes, newest first.', { entries: [AUDIT_ENTRY], next: null })
  @ApiErrors(new UnknownCursorError('x'), ORGANIZATION_NOT_FOUND)
  async list(@Query() { organization, limit: count, after }: AuditQueryDto): Promise<AuditPageDto> {
    const id = organization === undefined ? null : (await this.organizations.get(organization, { deleted: true })).id;
    const { items, next } = await this.audit.list(id, { count, after });
    return { entries: items, next };
  }
}
