import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { bundledPackages } from './test/jest/packages.mjs';

/** The packages of the workspaces from their source. */
const CLIENTS = {
  '^@channel-transcripts/client$': '<rootDir>/clients/typescript/src/index.ts',
  '^@channel-transcripts/nest$': '<rootDir>/clients/nest/src/index.ts',
};

/** As `nest build` compiles. */
const swc = JSON.parse(readFileSync(join(import.meta.dirname, 'tools/swc.json'), 'utf8'));

const shared = {
  testEnvironment: '<rootDir>/test/jest/environment.mjs',
  rootDir: import.meta.dirname,
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1', ...CLIENTS, ...(await bundledPackages()) },
  transform: {
    // The build excludes the files with tests.
    '^.+\\.ts$': ['@swc/jest', { ...swc, exclude: [], sourceMaps: 'inline', swcrc: false }],
  },
};

/** @type {import('jest').Config} */
export default {
  // The end-to-end tests wait for databases, processes and timers for more than half of their time. All workers share one
  // PostgreSQL: eight need fewer than the hundred connections that a server of TEST_DATABASE_URL has by default.
  maxWorkers: Math.min(3 * availableParallelism(), 8),
  // Longer than any test takes on a busy machine: tests check their own times. Longer than `until` waits, which says for what.
  testTimeout: 300_000,
  // A new worker loads every module again, and one that has handled large responses keeps some hundred MB for a while.
  workerIdleMemoryLimit: '1200MB',
  testSequencer: '<rootDir>/test/jest/sequencer.mjs',
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: ['<rootDir>/{src,test,tools,clients}/**/*.spec.ts'],
    },
    {
      ...shared,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/**/*.e2e-spec.ts'],
      setupFiles: ['<rootDir>/test/jest/wide-timeouts.ts'],
      globalSetup: '<rootDir>/test/jest/global-setup.mjs',
      globalTeardown: '<rootDir>/test/jest/global-teardown.mjs',
    },
  ],
};

/** A directory that the doctor recorded (`npm run smoke -- --record`) has a report; its traffic is played against that. */
const recordedByDoctor = existsSync(join(process.env['RECORDINGS_DIR'] ?? '', 'report/report.json'));

/** @type {import('jest').Config} */
export const recordings = {
  ...shared,
  testMatch: recordedByDoctor
    ? ['<rootDir>/test/recordings/doctor.recorded-spec.ts']
    : ['<rootDir>/test/**/*.recordings-spec.ts'],
};
