import 'reflect-metadata';
import { runCommand } from './admin/cli/run-command.js';

// Imported here, so that the other commands do not load the platform.
process.exitCode = await runCommand(process.argv.slice(2), async (work, options) => {
  const { withLocalTranscripts } = await import('./local-transcripts.js');
  await withLocalTranscripts(work, options);
});
