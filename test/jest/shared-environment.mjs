import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

/** Where Jest keeps the default timeout and the listeners of the running file. */
const STATE_OF_FILE = ['TEST_TIMEOUT_SYMBOL', 'EVENT_HANDLERS'].map((name) => Symbol.for(name));

/** The environments of this worker process by what they load modules with, which is the same for all projects. */
const environments = new Map();

/**
 * Contexts that stand for the global object of the process. Jest passes its context to these three functions of `node:vm`, which use
 * that object only when the option is absent. So the wrappers remove the option for the contexts in this set.
 */
const processContexts = new WeakSet();
const { compileFunction, SourceTextModule, SyntheticModule } = vm;
const withoutProcessContext = ({ context, ...others }) =>
  processContexts.has(context) ? others : { context, ...others };

vm.compileFunction = (code, parameters, { parsingContext, ...others } = {}) =>
  compileFunction(code, parameters, processContexts.has(parsingContext) ? others : { parsingContext, ...others });
vm.SourceTextModule = class extends SourceTextModule {
  constructor(code, options = {}) {
    super(code, withoutProcessContext(options));
  }
};
vm.SyntheticModule = class extends SyntheticModule {
  constructor(names, evaluate, options = {}) {
    super(names, evaluate, withoutProcessContext(options));
  }
};

/**
 * Jest's environment for Node, with the global object of the process. In Jest's own, a context of `node:vm`, each `Math` or
 * `Buffer` in the code is a call into C++. The test files of a worker share it, because modules belong to the global object
 * that they were loaded with (`shared-runtime.mjs`). After each file the timers, the default timeout, the console and the
 * environment variables are as before it. Modules are not shared with `--watch`, where the sources change between two runs.
 */
export default class SharedEnvironment extends TestEnvironment {
  constructor(config, context) {
    const { watch, watchAll } = config.globalConfig;
    const { extensionsToTreatAsEsm, fakeTimers, globals, moduleNameMapper, transform } = config.projectConfig;
    const key = JSON.stringify({ extensionsToTreatAsEsm, fakeTimers, globals, moduleNameMapper, transform });
    const shared = environments.get(key);
    if (shared && !watch && !watchAll) return shared;
    super(config, context);
    processContexts.add(this.context);
    this.global = globalThis;
    this.moduleMocker = new this.moduleMocker.constructor(globalThis);
    this.fakeTimersModern = new this.fakeTimersModern.constructor({ config: config.projectConfig, global: globalThis });
    this.before = { console, exit: process.exit, variables: { ...process.env } };
    environments.set(key, this);
  }

  async teardown() {
    this.fakeTimersModern.useRealTimers();
    for (const name of STATE_OF_FILE) delete globalThis[name];
    const { exit, variables } = this.before;
    // The console that Jest made for the file reports each line that is logged after its end as an error.
    globalThis.console = this.before.console;
    process.exit = exit;
    for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name];
    Object.assign(process.env, variables);
  }
}
