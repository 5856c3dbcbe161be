const shared = {
  testEnvironment: 'node',
  rootDir: import.meta.dirname,
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
          target: 'es2022',
          keepClassNames: true,
        },
        module: { type: 'es6' },
        sourceMaps: 'inline',
        swcrc: false,
      },
    ],
  },
};

/** @type {import('jest').Config} */
export default {
  // The end-to-end tests wait more than they work: a worker a core is not too many.
  maxWorkers: '100%',
  // Nest's module graph is loaded anew for each file; a worker is replaced before that adds up.
  workerIdleMemoryLimit: '700MB',
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: ['<rootDir>/{src,test,tools,clients}/**/*.spec.ts', '<rootDir>/test/bench/simulation/*.spec.mjs'],
    },
    {
      ...shared,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/**/*.e2e-spec.ts'],
      globalSetup: '<rootDir>/test/global-setup.mjs',
      globalTeardown: '<rootDir>/test/global-teardown.mjs',
    },
  ],
};

/** @type {import('jest').Config} */
export const recordings = { ...shared, testMatch: ['<rootDir>/test/**/*.recordings-spec.ts'] };
