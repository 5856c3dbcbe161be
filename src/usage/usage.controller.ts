import { Controller, Get, HttpStatus, Req, Query } from '@nestjs/common';
import { ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresApiKey } from '../auth/auth.decorators.js';
import { requestContext } from '../http/server/request-context.js';
import { ApiResult } from '../http/routes/response-docs.js';
import { AllowsHead } from '../http/routes/route.decorators.js';
import { QuotaService } from '../quota/quota.service.js';
import { Usage, USAGE_EXAMPLE } from '../quota/usage.dto.js';
import { UnknownCursorError } from '../domain/page.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { PageQueryDto } from '../http/routes/validation.js';
import { AUDIT_ENTRY, type AuditEntry, AuditPageDto, AuditTrail } from '../audit/audit-trail.js';

/** The quota usage of the caller's organization. */
@ApiTags('usage')
@Controller('usage')
@RequiresApiKey()
export class UsageController {
  constructor(private readonly quota: QuotaService) {}

  @Get()
  @AllowsHead()
  @ApiOperation({
    summary: 'Retrieve quota usage',
    description: 'Returns how much of its monthly quota the organization has used. Available on every plan, and free.',
  })
  @ApiResult(HttpStatus.OK, Usage, 'The usage of the current calendar month.', USAGE_EXAMPLE)
  getUsage(@Req() request: Request): Promise<Usage> {
    const { organization, keyId } = requestContext(request).caller;
    return this.quota.usage(organization.id, keyId);
  }
}

/** What was changed in the caller's organization. */
@ApiTags('usage')
@Controller('audit')
@RequiresApiKey()
export class AuditController {
  constructor(private readonly audit: AuditTrail) {}

  @Get()
  @AllowsHead()
  @ApiOperation({
    summary: 'List the changes in the organization',
    description:
      'Returns who changed jobs, subscriptions, webhooks, API keys, the plan and the limit of the organization, on every plan. Who the ' +
      'operators are, and from where they call, is left out. Entries are stored as long as usage.',
  })
  @ApiResult(HttpStatus.OK, AuditPageDto, 'A page of changes, newest first.', { entries: [AUDIT_ENTRY], next: null })
  @ApiErrors(new UnknownCursorError('x'))
  async listChanges(@Query() page: PageQueryDto, @Req() request: Request): Promise<AuditPageDto> {
    const { items, next } = await this.audit.list(requestContext(request).caller.organization.id, page);
    return { entries: items.map(withoutOperator), next };
  }
}

function withoutOperator(entry: AuditEntry): AuditEntry {
  const isOperator = entry.keyId === null;
  return isOperator ? { ...entry, requestId: null, callId: null, address: null, person: null } : entry;
}
