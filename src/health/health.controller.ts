import {
  Controller,
  Get,
  HttpStatus,
  Res,
  Header,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { ApiOperation, ApiServiceUnavailableResponse, ApiTags, ApiBearerAuth, ApiOkResponse } from '@nestjs/swagger';
import type { Response, Request } from 'express';
import { ApiResult, refTo } from '../http/routes/response-docs.js';
import { AllowsHead, AnyQuery, Probe, Public, Audience } from '../http/routes/route.decorators.js';
import { HealthService, LiveDto, READY, ReadyDto } from './health.service.js';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { Environment } from '../config/environment.js';
import { VERSION } from '../config/package.js';
import { UnauthorizedError } from '../http/errors/http-errors.js';
import { SecretToken } from '../auth/authentication.js';
import { bearerToken } from '../http/server/request-context.js';
import { ApiErrors, type ErrorExample } from '../http/errors/error-docs.js';

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

/** Metrics of the process and not of an application in it: prom-client's default collectors may be started only once. */
const processMetrics = new Registry();

class MetricsTokenError extends UnauthorizedError {
  constructor(sent?: string) {
    super('the header "Authorization: Bearer <METRICS_TOKEN>"', 'the metrics token', sent);
  }
}

const TOKEN_REQUIRED: ErrorExample = {
  title: 'The metrics token is missing or invalid, while `METRICS_TOKEN` is set',
  error: new MetricsTokenError(),
};

/** Requires `METRICS_TOKEN` as the Bearer token when it is set. */
@ApiErrors(TOKEN_REQUIRED, 'internal_error')
@Injectable()
class MetricsGuard implements CanActivate {
  private readonly token: SecretToken | undefined;

  constructor({ METRICS_TOKEN }: Environment) {
    this.token = METRICS_TOKEN === undefined ? undefined : new SecretToken(METRICS_TOKEN);
  }

  canActivate(context: ExecutionContext): boolean {
    const given = bearerToken(context.switchToHttp().getRequest<Request>());
    if (this.token && !this.token.matches(given)) throw new MetricsTokenError(given);
    return true;
  }
}

/** The name of the metrics token's scheme in the OpenAPI document. */
export const METRICS_TOKEN_SCHEME = 'metricsToken';

const EXAMPLE = [
  '# HELP ct_entries_total Entries of responses, and videos of archive jobs that are not tried again: cached, fetched, or the code of their failure.',
  '# TYPE ct_entries_total counter',
  'ct_entries_total{outcome="cached"} 1207',
  'ct_entries_total{outcome="fetched"} 311',
  '',
].join('\n');

/** Prometheus metrics of the process. */
@ApiTags('metrics')
@Controller('metrics')
@UseGuards(MetricsGuard)
@Probe()
@Audience('internal')
@AllowsHead()
@AnyQuery()
@ApiBearerAuth(METRICS_TOKEN_SCHEME)
export class MetricsController {
  constructor(private readonly registry: Registry) {
    if (processMetrics.getMetricsAsArray().length === 0) collectDefaultMetrics({ register: processMetrics });
    new Gauge({
      name: 'ct_build_info',
      help: 'Always 1; the labels name the running version.',
      labelNames: ['version', 'node_version'],
      registers: [registry],
    }).set({ version: VERSION, node_version: process.version }, 1);
  }

  @Get()
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  @ApiOperation({
    summary: 'Retrieve metrics',
    description:
      'Returns the metrics of the process in the Prometheus text format. Requires the metrics token when `METRICS_TOKEN` is set.',
  })
  @ApiOkResponse({
    description: 'All metrics, each with a text of help.',
    content: { 'text/plain': { schema: { type: 'string' }, example: EXAMPLE } },
  })
  getMetrics(): Promise<string> {
    return Registry.merge([this.registry, processMetrics]).metrics();
  }
}
