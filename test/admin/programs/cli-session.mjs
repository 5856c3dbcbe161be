// Runs admin commands of the build one after another, each as if in a process of its own: its arguments and variables
// arrive over IPC, and its exit code and both outputs are sent back.

// Outputs are those of a program whose outputs are pipes, wherever the tests run.
Object.defineProperty(process.stderr, 'isTTY', { value: false });

let commands = 0;

// The tests were ended.
process.on('disconnect', () => process.exit());

process.on('message', async ({ args, variables, signal }) => {
  // As if it had come from outside, which a test of one process for each command checks.
  if (signal) return void process.emit(signal, signal);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, variables);
  process.argv.splice(2, Infinity, ...args);
  const outputs = { stdout: '', stderr: '' };
  const writes = { stdout: process.stdout.write, stderr: process.stderr.write };
  for (const name of Object.keys(outputs)) {
    process[name].write = (chunk, written) => {
      outputs[name] += chunk;
      written?.();
      return true;
    };
  }
  try {
    // The query makes it another module, which runs. What it imports is loaded once.
    await import(`../../../dist/cli.js?${++commands}`);
    process.send({ code: process.exitCode, output: outputs.stdout, errorOutput: outputs.stderr });
  } finally {
    process.exitCode = undefined;
    for (const name of Object.keys(writes)) process[name].write = writes[name];
  }
});
