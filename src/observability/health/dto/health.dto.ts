import { ApiExtraModels, ApiProperty, ApiSchema, getSchemaPath } from '@nestjs/swagger';

@ApiSchema({ name: 'Live' })
export class LiveDto {
  @ApiProperty({ enum: ['ok'], description: 'Always `ok`.', example: 'ok' })
  status: 'ok';
}

@ApiSchema({ name: 'Dependency' })
export class DependencyDto {
  @ApiProperty({
    enum: ['up', 'down'],
    description: 'Whether it can be used: the database answers, the cache accepts writes.',
    example: 'up',
  })
  status: 'up' | 'down';

  @ApiProperty({ description: 'Whether requests fail without it.', example: true })
  critical: boolean;
}

@ApiSchema({ name: 'Ready' })
@ApiExtraModels(DependencyDto)
export class ReadyDto {
  @ApiProperty({
    enum: ['ok', 'degraded', 'unavailable'],
    description: 'What the dependencies come to.',
    example: 'ok',
  })
  status: 'ok' | 'degraded' | 'unavailable';

  @ApiProperty({ description: 'True when the service is on its way out.', example: false })
  stopping: boolean;

  @ApiProperty({
    type: 'object',
    additionalProperties: { $ref: getSchemaPath(DependencyDto) },
    description: 'Each dependency by name.',
    example: { database: { status: 'up', critical: true }, cache: { status: 'up', critical: false } },
  })
  dependencies: Record<string, DependencyDto>;
}
