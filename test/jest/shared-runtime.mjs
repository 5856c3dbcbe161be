import { AsyncLocalStorage } from 'node:async_hooks';
import { pathToFileURL } from 'node:url';
import Runtime from 'jest-runtime';

/** The storages that were used since the last test file. */
const storages = new Set();

// jest-circus creates a storage for each test file. Node.js until 22 works for every storage at each promise, also for those
// that nobody uses any more, unless they are disabled. A storage that is used again enables itself.
const { run } = AsyncLocalStorage.prototype;
AsyncLocalStorage.prototype.run = function (...values) {
  storages.add(this);
  return run.apply(this, values);
};

/** The runtimes of this worker process, one for each environment. */
const runtimes = new WeakMap();

/**
 * Jest's module loader, whose modules are shared by the test files of a worker: to load Nest, TypeORM and youtubei.js takes
 * longer than most files. Only the test file and jest-circus, which holds the state of `describe` and `it`, are loaded anew.
 * This uses private fields of Jest, so a new version of Jest may need a change here; without `runtime` and
 * `testEnvironment` in jest.config.mjs the tests pass too, and take twice the processor
 * time (docs/decisions/0029-shared-test-modules.md).
 */
export default class SharedRuntime extends Runtime {
  constructor(config, environment, resolver, transformer, cacheFS, coverage, testPath, globalConfig) {
    const shared = runtimes.get(environment);
    if (!shared) super(config, environment, resolver, transformer, cacheFS, coverage, testPath, globalConfig);
    const runtime = shared ?? this;
    runtime.currentTest = testPath;
    runtimes.set(environment, runtime);
    return runtime;
  }

  teardown() {
    this.restoreAllMocks();
    const { internalModuleRegistry: jestModules } = this.registries;
    for (const path of jestModules.keys()) if (path.includes('/jest-circus/')) jestModules.delete(path);
    this.registries.esModuleRegistry.delete(pathToFileURL(this.currentTest).href);
    for (const storage of storages) storage.disable();
    storages.clear();
    this.testState.state = 'loading';
  }
}
