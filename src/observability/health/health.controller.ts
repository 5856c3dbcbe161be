import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiServiceUnavailableResponse, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiErrors } from '../../http/error-docs.js';
import { HealthService } from './health.service.js';
import { LiveDto, ReadyDto } from './dto/health.dto.js';

/** Probes for orchestrators and load balancers. */
@ApiTags('health')
@Controller('health')
@ApiErrors('method_not_allowed')
export class HealthController {
  constructor(private readonly health: HealthService) {}

  @Get('live')
  @ApiOperation({
    security: [],
    operationId: 'getLive',
    summary: 'Liveness: whether the process responds; checks no dependency',
  })
  @ApiOkResponse({ type: LiveDto, description: 'The process is alive.' })
  live(): LiveDto {
    return { status: 'ok' };
  }

  @Get('ready')
  @ApiOperation({
    security: [],
    operationId: 'getReady',
    summary: 'Readiness: whether requests can be served, with the status of each dependency',
  })
  @ApiOkResponse({
    type: ReadyDto,
    description: 'Requests are served; `degraded` when a non-critical dependency is unavailable.',
  })
  @ApiServiceUnavailableResponse({
    type: ReadyDto,
    description: 'A critical dependency is unavailable, or the service is shutting down.',
  })
  async ready(@Res({ passthrough: true }) response: Response): Promise<ReadyDto> {
    const readiness = await this.health.readiness();
    if (readiness.status === 'unavailable') response.status(503);
    return readiness;
  }
}
