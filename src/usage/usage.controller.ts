import { Controller, Get, Query, Req } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresApiKey } from '../auth/guarded.decorator.js';
import { TOO_MANY_FAILURES } from '../rate-limit/limit-docs.js';
import { ApiErrors } from '../http/error-docs.js';
import { RATE_LIMIT_HEADERS } from '../http/limit-headers.js';
import { requestContext } from '../http/request-context.js';
import { NoParameters } from '../http/validation.js';
import { QuotaService } from '../quota/quota.service.js';
import type { Usage } from '../quota/usage.js';
import { UsageDto } from './dto/usage.dto.js';

/** What the caller's organization has used of its quota; for every plan. */
@ApiTags('usage')
@Controller('usage')
@RequiresApiKey()
export class UsageController {
  constructor(private readonly quota: QuotaService) {}

  @Get()
  @ApiOperation({ operationId: 'getUsage', summary: "The organization's quota in the current month" })
  @ApiOkResponse({ type: UsageDto, description: 'The counts as of now.', headers: RATE_LIMIT_HEADERS })
  @ApiErrors(
    'invalid_request',
    'unauthorized',
    'invalid_api_key',
    'method_not_allowed',
    'rate_limited',
    TOO_MANY_FAILURES,
    'internal_error',
    'service_unavailable',
  )
  usage(@Req() request: Request, @Query() _query: NoParameters): Promise<Usage> {
    return this.quota.usage(requestContext(request).caller.organization.id);
  }
}
