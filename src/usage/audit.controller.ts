import { Controller, Get, HttpStatus, Query, Req } from '@nestjs/common';
import { ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresApiKey } from '../auth/auth.decorators.js';
import { UnknownCursorError } from '../domain/page.js';
import { ApiErrors } from '../http/error-docs.js';
import { requestContext } from '../http/request-context.js';
import { ApiResult } from '../http/response-docs.js';
import { AllowsHead } from '../http/route.decorators.js';
import { PAGE_SIZE_DEFAULT, PageAfter, PageLimit } from '../http/validation.js';
import { type AuditEntry, AuditPageDto, AuditTrail } from '../organizations/audit-trail.js';

class ChangesQueryDto {
  @PageLimit(20)
  limit: number = PAGE_SIZE_DEFAULT;

  @PageAfter()
  after?: string;
}

const EXAMPLE: AuditEntry = {
  id: '4215',
  at: new Date('2026-11-20T16:21:44Z'),
  actor: 'key',
  keyId: 'key_5b1f6a2c9d3e4f7081a2b3c4',
  action: 'job.canceled',
  organizationId: 'org_0a1b2c3d4e5f6a7b8c9d0e1f',
  target: 'job_2vXk9QmB7sTfLwYzR4nCdE',
  before: { state: 'running' },
  after: { state: 'canceled' },
  requestId: 'nightly-4711',
  callId: '8f14c5e2-6d0b-4a57-9e31-0c2f7be4d813',
  address: '203.0.113.9',
  person: null,
};

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
  @ApiResult(HttpStatus.OK, AuditPageDto, 'A page of changes, newest first.', { entries: [EXAMPLE], next: null })
  @ApiErrors(new UnknownCursorError('x'))
  async listChanges(@Query() page: ChangesQueryDto, @Req() request: Request): Promise<AuditPageDto> {
    const { items, next } = await this.audit.list(requestContext(request).caller.organization.id, page);
    return { entries: items.map(withoutOperator), next };
  }
}

function withoutOperator(entry: AuditEntry): AuditEntry {
  const isOperator = entry.keyId === null;
  return isOperator ? { ...entry, requestId: null, callId: null, address: null, person: null } : entry;
}
