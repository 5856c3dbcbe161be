import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { RedisConnection } from './redis-connection.js';

/** Policies that evict what was not used for longest, or least often. The others evict what is in use just as well. */
const GOOD_POLICIES = /^(?:allkeys|volatile)-(?:lru|lfu)$/;

/** Checks at start, and at each new connection, what works and yet is configured badly, and logs it. */
@Injectable()
export class CacheWarnings implements OnApplicationBootstrap {
  private readonly logger = new Logger(CacheWarnings.name);
  private warnedOf: string | undefined;

  constructor(
    private readonly connection: RedisConnection,
    private readonly secretIsGuessable: boolean,
  ) {}

  onApplicationBootstrap(): void {
    if (this.secretIsGuessable) {
      this.logger.warn({
        event: 'cache_secret_guessable',
        message:
          'Cache entries are signed with a secret derived from DATABASE_URL, which has no password. Set CACHE_SECRET.',
      });
    }
    this.connection.onReady(() => void this.checkPolicy());
  }

  private async checkPolicy(): Promise<void> {
    // A server that does not permit INFO is not checked.
    const info = await this.connection.run((client) => client.info('memory')).catch(() => '');
    const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
    const bounded = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0) > 0;
    if (!bounded || policy === undefined || GOOD_POLICIES.test(policy) || policy === this.warnedOf) return;
    this.warnedOf = policy;
    this.logger.warn({
      event: 'cache_eviction_policy',
      message:
        policy === 'noeviction'
          ? 'Redis has a memory limit and the policy noeviction: when it is full it refuses writes. Set maxmemory-policy to allkeys-lru.'
          : `Redis evicts by ${policy}, which removes entries and limits that are in use. Set maxmemory-policy to allkeys-lru.`,
    });
  }
}
