import { ApiExtraModels, ApiProperty, ApiSchema, getSchemaPath } from '@nestjs/swagger';

const READY = {
  status: 'ok',
  stopping: false,
  dependencies: { database: { status: 'up', critical: true }, cache: { status: 'up', critical: false } },
} satisfies ReadyDto;

@ApiSchema({ name: 'Live' })
export class LiveDto {
  @ApiProperty({ enum: ['ok'], description: 'Always `ok`.', example: 'ok' })
  status: 'ok';
}

@ApiSchema({ name: 'Dependency' })
export class DependencyDto {
  @ApiProperty({
    enum: ['up', 'down'],
    description:
      'Whether the dependency is available: the database responds and can write, the cache accepts writes, messages can arrive over ' +
      'NATS, the keys of the identity provider could be read at the last attempt.',
    example: READY.dependencies.database.status,
  })
  status: 'up' | 'down';

  @ApiProperty({
    description: 'Whether requests fail while the dependency is down.',
    example: READY.dependencies.database.critical,
  })
  critical: boolean;
}

@ApiSchema({ name: 'Ready' })
@ApiExtraModels(DependencyDto)
export class ReadyDto {
  @ApiProperty({
    enum: ['ok', 'degraded', 'unavailable'],
    description:
      '`ok` when every dependency is up, `degraded` when a non-critical one is down, `unavailable` when a critical one is ' +
      'down or the service is shutting down.',
    example: READY.status,
  })
  status: 'ok' | 'degraded' | 'unavailable';

  @ApiProperty({ description: 'Whether the service is shutting down.', example: READY.stopping })
  stopping: boolean;

  @ApiProperty({
    type: 'object',
    additionalProperties: { $ref: getSchemaPath(DependencyDto) },
    description: 'The dependencies by name.',
    example: READY.dependencies,
  })
  dependencies: Record<string, DependencyDto>;
}
