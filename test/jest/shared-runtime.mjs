import { AsyncLocalStorage } from 'node:async_hooks';
import { pathToFileURL } from 'node:url';
import Runtime from 'jest-runtime';

/** What jest-circus stores for the running test, by its storage. */
const stored = new Map();

// jest-circus stores which test runs in an asynchronous storage, for which Node.js 22 and earlier run a hook at each promise. A
// variable replaces it: only tests that run at the same time (`it.concurrent`) need the storage.
const { run, getStore } = AsyncLocalStorage.prototype;
AsyncLocalStorage.prototype.run = function (store, callback, ...values) {
  if (!stored.has(this) && !new Error().stack.split('\n', 3)[2]?.includes('/jest-circus/')) {
    return run.call(this, store, callback, ...values);
  }
  const outer = stored.get(this);
  if (outer?.test && outer.test !== store.test) throw new Error('Tests of a file cannot run at the same time here.');
  stored.set(this, store);
  return callback(...values).finally(() => stored.set(this, outer));
};
AsyncLocalStorage.prototype.getStore = function () {
  return stored.has(this) ? stored.get(this) : getStore.call(this);
};

/** The runtimes of this worker process by their environment: one, except with `--watch`. */
const runtimes = new WeakMap();

/**
 * Jest's module loader, whose modules are shared by the test files of a worker: to load Nest and TypeORM takes
 * longer than most files. Only the test file and jest-circus, which holds the state of `describe` and `it`, are loaded anew.
 * This uses private fields of Jest, so a new version of Jest may need a change here; without `runtime` and
 * `testEnvironment` in jest.config.mjs the tests pass too, and take more processor time.
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
    stored.clear();
    this.testState.state = 'loading';
  }
}
