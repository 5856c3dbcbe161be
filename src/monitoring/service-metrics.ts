import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { HealthService } from './health.service.js';

/** Gauges of the process: its version, and its dependencies. */
@Injectable()
export class ServiceMetrics {
  constructor(registry: Registry, health: HealthService) {
    const registers = [registry];
    const version = readVersion(import.meta.dirname);
    new Gauge({
      name: 'ct_build_info',
      help: 'Always 1; the labels name the running version.',
      labelNames: ['version', 'node_version'],
      registers,
    }).set({ version, node_version: process.version }, 1);
    new Gauge({
      name: 'ct_dependency_up',
      help: 'Whether a dependency is available, checked as by /health/ready.',
      labelNames: ['dependency', 'critical'],
      registers,
      async collect() {
        const dependencies = await health.checkDependencies();
        for (const [dependency, { status, critical }] of Object.entries(dependencies))
          this.set({ dependency, critical: String(critical) }, Number(status === 'up'));
      },
    });
  }
}

/** The version in the nearest package.json: a bundle and its single modules are at different depths below it. */
function readVersion(directory: string): string {
  const file = join(directory, 'package.json');
  if (!existsSync(file) && directory !== dirname(directory)) return readVersion(dirname(directory));
  const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (typeof parsed === 'object' && parsed !== null && 'version' in parsed) return String(parsed.version);
  throw new Error(`${file} has no version.`);
}
