import { HELP, readCommandLine } from './command-line.js';
import { startStandIn } from './fake-youtube.js';

try {
  const options = readCommandLine(process.argv.slice(2));
  if (options) await run(options);
  else process.stdout.write(HELP);
} catch (error) {
  process.stderr.write(`stand-in: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function run(options: NonNullable<ReturnType<typeof readCommandLine>>): Promise<void> {
  const standIn = await startStandIn(options);
  process.stdout.write(
    `The stand-in for YouTube listens at ${standIn.url}\n` +
      `  start the service with   YOUTUBE_BASE_URL=${standIn.url}\n` +
      `  channels and controls    curl ${standIn.url}/\n` +
      `  what was asked           curl ${standIn.url}/stand-in/requests\n` +
      'Ctrl-C stops it.\n',
  );
  const stop = (): void => void standIn.close();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}
