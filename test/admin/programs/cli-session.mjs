// Runs admin commands of the build one after another, each as if in a process of its own: its arguments and variables
// arrive over IPC, and its exit code and both outputs are sent back.
import 'reflect-metadata';
import { runCommand } from '../../../dist/modules/admin/cli/run-command.js';

/** Commands that read transcripts load the platform. */
async function runLocally(work, options) {
  const { withLocalTranscripts } = await import('../../../dist/modules/local-transcripts.js');
  await withLocalTranscripts(work, options);
}

// Outputs are those of a program whose outputs are pipes, wherever the tests run.
Object.defineProperty(process.stderr, 'isTTY', { value: false });

process.on('message', async ({ args, variables }) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, variables);
  const outputs = { stdout: '', stderr: '' };
  const writes = { stdout: process.stdout.write, stderr: process.stderr.write };
  for (const name of Object.keys(outputs)) {
    process[name].write = (chunk) => {
      outputs[name] += chunk;
      return true;
    };
  }
  try {
    const code = await runCommand(args, runLocally);
    process.send({ code, output: outputs.stdout, errorOutput: outputs.stderr });
  } finally {
    for (const name of Object.keys(writes)) process[name].write = writes[name];
  }
});
