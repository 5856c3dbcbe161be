import { Controller, Get, HttpStatus, Query, Req } from '@nestjs/common';
import { ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresApiKey } from '../auth/auth.decorators.js';
import { UnknownCursorError } from '../domain/page.js';
import { ApiErrors } from '../http/errors/error-docs.js';
import { requestContext } from '../http/server/request-context.js';
import { ApiResult } from '../http/routes/response-docs.js';
import { AllowsHead } from '../http/routes/route.decorators.js';
import { PageQueryDto } from '../http/routes/validation.js';
import { AUDIT_ENTRY, type AuditEntry, AuditPageDto, AuditTrail } from '../audit/audit-trail.js';

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
