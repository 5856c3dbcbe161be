import { z } from 'zod';

export const LiveDto = z.object({ status: z.literal('ok').describe('Always `ok`.') }).meta({ id: 'Live' });
export type LiveDto = z.infer<typeof LiveDto>;

const Dependency = z
  .object({
    status: z
      .enum(['up', 'down'])
      .describe(
        'Whether the dependency is available: the database responds and can write, the cache accepts writes, messages can arrive over ' +
          'NATS, the keys of the identity provider could be read at the last attempt.',
      ),
    critical: z.boolean().describe('Whether requests fail while the dependency is down.'),
  })
  .meta({ id: 'Dependency' });
export type DependencyDto = z.infer<typeof Dependency>;

export const ReadyDto = z
  .object({
    status: z
      .enum(['ok', 'degraded', 'unavailable'])
      .describe(
        '`ok` when every dependency is up, `degraded` when a non-critical one is down, `unavailable` when a critical one is ' +
          'down or the service is shutting down.',
      ),
    stopping: z.boolean().describe('Whether the service is shutting down.'),
    dependencies: z.record(z.string(), Dependency).describe('The dependencies by name.'),
  })
  .meta({ id: 'Ready' });
export type ReadyDto = z.infer<typeof ReadyDto>;

/** The example of the OpenAPI document. */
export const READY: ReadyDto = {
  status: 'ok',
  stopping: false,
  dependencies: { database: { status: 'up', critical: true }, cache: { status: 'up', critical: false } },
};
