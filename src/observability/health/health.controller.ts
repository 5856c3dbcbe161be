import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiServiceUnavailableResponse, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiErrors } from '../../http/error-docs.js';
import { HealthService } from './health.service.js';
import { LiveDto, ReadyDto } from './dto/health.dto.js';

/** Probes for whoever runs the service. */
@ApiTags('health')
@Controller('health')
@ApiErrors('method_not_allowed')
export class HealthController {
  constructor(private readonly health: HealthService) {}

  @Get('live')
  @ApiOperation({ security: [], operationId: 'getLive', summary: 'Whether the process answers; touches nothing else' })
  @ApiOkResponse({ type: LiveDto, description: 'The process is alive.' })
  live(): LiveDto {
    return { status: 'ok' };
  }

  @Get('ready')
  @ApiOperation({
    security: [],
    operationId: 'getReady',
    summary: 'Whether requests can be served; names each dependency',
  })
  @ApiOkResponse({
    type: ReadyDto,
    description: 'Requests are served; `degraded` when a dependency that is not critical is away.',
  })
  @ApiServiceUnavailableResponse({
    type: ReadyDto,
    description: 'A critical dependency is away, or the service is shutting down.',
  })
  async ready(@Res({ passthrough: true }) response: Response): Promise<ReadyDto> {
    const readiness = await this.health.readiness();
    if (readiness.status === 'unavailable') response.status(503);
    return readiness;
  }
}
