import { parseArgs } from 'node:util';
import { startFakeYoutube } from './fake-youtube.js';
import { readChanges } from './settings.js';

const text = { type: 'string' } as const;

try {
  const { values } = parseArgs({ options: { port: text, settings: text } });
  const { settings, faults = [] } = readChanges(values.settings ?? '{}');
  const fakeYoutube = await startFakeYoutube({ ...settings, faults, port: Number(values.port ?? 0) });
  process.stdout.write(
    `The fake YouTube listens at ${fakeYoutube.url}\n` +
      `  start the service with   YOUTUBE_BASE_URL=${fakeYoutube.url}\n` +
      `  channels and controls    curl ${fakeYoutube.url}/\n` +
      `  received requests        curl ${fakeYoutube.url}/fake-youtube/requests\n` +
      'Ctrl-C stops it.\n',
  );
  const stop = (): void => void fakeYoutube.close();
  // npm passes on a Ctrl-C that the terminal has sent already.
  process.on('SIGINT', stop).on('SIGTERM', stop);
} catch (error) {
  process.stderr.write(`fake-youtube: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
