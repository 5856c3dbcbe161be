import { Controller, Get, HttpStatus, Res } from '@nestjs/common';
import { ApiOperation, ApiServiceUnavailableResponse, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiResult, refTo } from '../http/routes/response-docs.js';
import { AllowsHead, AnyQuery, Probe, Public } from '../http/routes/route.decorators.js';
import { HealthService, LiveDto, READY, ReadyDto } from './health.service.js';

/** Probes for load balancers and orchestrators. */
@ApiTags('health')
@Controller('health')
@Public()
@Probe()
@AllowsHead()
@AnyQuery()
export class HealthController {
  constructor(private readonly health: HealthService) {}

  @Get('live')
  @ApiOperation({
    security: [],
    summary: 'Check liveness',
    description: 'Responds while the process runs, without checking any dependency.',
  })
  @ApiResult(HttpStatus.OK, LiveDto, 'The process is alive.', { status: 'ok' })
  getLive(): LiveDto {
    return { status: 'ok' };
  }

  @Get('ready')
  @ApiOperation({
    security: [],
    summary: 'Check readiness',
    description: 'Checks whether the service can serve requests, and reports the state of each dependency.',
  })
  @ApiResult(
    HttpStatus.OK,
    ReadyDto,
    'The service can serve requests. The status is `degraded` while a non-critical dependency is down.',
    READY,
  )
  @ApiServiceUnavailableResponse({
    description: 'A critical dependency is down, or the service is shutting down.',
    content: { 'application/json': { schema: refTo(ReadyDto) } },
  })
  async getReady(@Res({ passthrough: true }) response: Response): Promise<ReadyDto> {
    const readiness = await this.health.readiness();
    if (readiness.status === 'unavailable') response.status(503);
    return readiness;
  }
}
