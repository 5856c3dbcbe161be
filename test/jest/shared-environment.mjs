import { TestEnvironment } from 'jest-environment-node';

/** Where Jest keeps the default timeout and the listeners of the running file. */
const STATE_OF_FILE = ['TEST_TIMEOUT_SYMBOL', 'EVENT_HANDLERS'].map((name) => Symbol.for(name));

/** The environments of this worker process, one for each project of jest.config.mjs. */
const environments = new Map();

/**
 * Jest's environment for Node, shared by the test files of a worker, because modules belong to the global object that they
 * were loaded with (`shared-runtime.mjs`). After each file the timers, the default timeout and the environment variables
 * are as before it. Nothing is shared with `--watch`, where the sources change between two runs.
 */
export default class SharedEnvironment extends TestEnvironment {
  constructor(config, context) {
    const { globalConfig, projectConfig } = config;
    const shared = environments.get(projectConfig.id);
    if (shared && !globalConfig.watch && !globalConfig.watchAll) return shared;
    super(config, context);
    this.variables = { ...this.global.process.env };
    this.exit = this.global.process.exit;
    environments.set(projectConfig.id, this);
  }

  async teardown() {
    this.fakeTimers.useRealTimers();
    this.fakeTimersModern.useRealTimers();
    for (const name of STATE_OF_FILE) delete this.global[name];
    const { process } = this.global;
    process.exit = this.exit;
    for (const name of Object.keys(process.env)) if (!(name in this.variables)) delete process.env[name];
    Object.assign(process.env, this.variables);
  }
}
