import { readFileSync } from 'node:fs';
import { Injectable } from '@nestjs/common';
import { CacheSize } from '../../cache/cache-size.js';
import { CacheWrites, WRITE_FAILURES } from '../../cache/cache-writes.js';
import { HealthService } from '../health/health.service.js';
import { ResponseMemory } from '../../transcripts/response/response-memory.js';
import { MetricsRegistry, type Reading } from './metrics-registry.js';

/** Shows what the service is and what it depends on: its version, its dependencies, its cache. */
@Injectable()
export class ServiceMetrics {
  constructor(
    metrics: MetricsRegistry,
    health: HealthService,
    size: CacheSize,
    writes: CacheWrites,
    memory: ResponseMemory,
  ) {
    const version = versionOf(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
    metrics.readGauge(
      { name: 'ct_build_info', help: 'Always 1; what runs.', labelNames: ['version', 'node_version'] },
      () => [[{ version, node_version: process.version }, 1]],
    );
    metrics.readGauge(
      {
        name: 'ct_dependency_up',
        help: 'Whether a dependency can be used, asked as for /health/ready.',
        labelNames: ['dependency', 'critical'],
      },
      async () =>
        Object.entries(await health.checkDependencies()).map(([dependency, { status, critical }]): Reading => [
          { dependency, critical: String(critical) },
          Number(status === 'up'),
        ]),
    );
    metrics.readCounter(
      {
        name: 'ct_cache_write_failures_total',
        help: 'Entries that the shared cache did not take: it refused them, or was unavailable.',
        labelNames: ['reason'],
      },
      () => WRITE_FAILURES.map((reason): Reading => [{ reason }, writes.failures[reason]]),
    );
    metrics.readGauge({ name: 'ct_response_buffer_bytes', help: 'Texts that wait for their readers.' }, () => [
      [{}, memory.heldBytes],
    ]);
    metrics.readGauge(
      { name: 'ct_response_buffer_max_bytes', help: 'What they may take, by RESPONSE_BUFFER_MAX_MEGABYTES.' },
      () => [[{}, memory.bytesMax]],
    );
    const bytes = (name: string, help: string, of: 'usedBytes' | 'bytesMax'): void =>
      metrics.readGauge({ name, help }, () => {
        const read = size.read();
        return read ? [[{}, read[of]]] : [];
      });
    if (!size.read()) return;
    bytes('ct_cache_size_bytes', 'What the cache in memory holds; absent with REDIS_URL.', 'usedBytes');
    bytes('ct_cache_size_max_bytes', 'What it may hold, by CACHE_MAX_MEGABYTES; absent with REDIS_URL.', 'bytesMax');
  }
}

function versionOf(packageJson: string): string {
  const parsed: unknown = JSON.parse(packageJson);
  if (typeof parsed === 'object' && parsed !== null && 'version' in parsed) return String(parsed.version);
  throw new Error('package.json has no version.');
}
