import { Controller, Get, HttpStatus, Req } from '@nestjs/common';
import { ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresApiKey } from '../auth/auth.decorators.js';
import { requestContext } from '../http/server/request-context.js';
import { ApiResult } from '../http/routes/response-docs.js';
import { AllowsHead } from '../http/routes/route.decorators.js';
import { QuotaService } from '../quota/quota.service.js';
import { Usage, USAGE_EXAMPLE } from '../quota/usage.dto.js';

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
