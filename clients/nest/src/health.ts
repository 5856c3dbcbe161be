import { Inject, Injectable } from '@nestjs/common';

/** Returns why the service is not ready; undefined when it is. */
export type Probe = () => Promise<string | undefined>;
export const PROBE = Symbol('probe');

/** A result for `HealthCheckService.check` of @nestjs/terminus. */
export type HealthResult = Record<string, { status: 'up' | 'down'; reason?: string }>;

/** Tells Terminus whether the service is ready: `health.check([() => indicator.isHealthy('transcripts')])`. */
@Injectable()
export class ChannelTranscriptsHealthIndicator {
  constructor(@Inject(PROBE) private readonly probe: Probe) {}

  /** @param key the name in the response of the health check */
  async isHealthy(key: string): Promise<HealthResult> {
    const reason = await this.probe();
    return { [key]: reason === undefined ? { status: 'up' } : { status: 'down', reason } };
  }
}
