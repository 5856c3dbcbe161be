import { HELP, readCommandLine } from './command-line.js';
import { startFakeYoutube } from './fake-youtube.js';

try {
  const options = readCommandLine(process.argv.slice(2));
  if (options) await run(options);
  else process.stdout.write(HELP);
} catch (error) {
  process.stderr.write(`fake-youtube: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function run(options: NonNullable<ReturnType<typeof readCommandLine>>): Promise<void> {
  const fakeYoutube = await startFakeYoutube(options);
  process.stdout.write(
    `The fake YouTube listens at ${fakeYoutube.url}\n` +
      `  start the service with   YOUTUBE_BASE_URL=${fakeYoutube.url}\n` +
      `  channels and controls    curl ${fakeYoutube.url}/\n` +
      `  received requests        curl ${fakeYoutube.url}/fake-youtube/requests\n` +
      'Ctrl-C stops it.\n',
  );
  const stop = (): void => void fakeYoutube.close();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}
