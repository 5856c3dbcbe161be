import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { Environment } from '../../config/environment.js';
import { CallsInFlight } from '../../rate-limit/calls-in-flight.js';
import { ResponseMemory } from '../../transcripts/response/response-memory.js';
import { HealthService } from '../health/health.service.js';

/** Gauges of the process: its version, its dependencies, and how much of its limits is in use. */
@Injectable()
export class ServiceMetrics {
  constructor(
    private readonly registry: Registry,
    health: HealthService,
    calls: CallsInFlight,
    memory: ResponseMemory,
    { CALLS_PER_PROCESS }: Environment,
  ) {
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
    this.gauge('ct_calls_in_flight', 'Running calls for transcripts, uploads and job results.', () => calls.count);
    this.gauge('ct_calls_in_flight_max', 'CALLS_PER_PROCESS; 0 is no limit.', () => CALLS_PER_PROCESS);
    this.gauge('ct_response_buffer_bytes', 'Texts buffered for slow readers.', () => memory.heldBytes);
    this.gauge('ct_response_buffer_max_bytes', 'RESPONSE_BUFFER_MAX_MEGABYTES in bytes.', () => memory.bytesMax);
  }

  private gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
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
