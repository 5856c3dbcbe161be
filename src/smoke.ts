import { parseArgs } from 'node:util';
import { Logger } from '@nestjs/common';
import { EnvironmentError, readEnvironment } from './config/environment.js';
import { parseChannelReference } from './domain/references/channel-reference.js';
import { examine } from './platform/youtube/doctor/doctor.js';
import { TrafficRecording } from './platform/youtube/doctor/traffic-recording.js';

const USAGE = 'Usage: npm run smoke -- @handle [number of videos, 1 to 100, default 10] [--record DIRECTORY]';

/**
 * Checks each part of the requests to YouTube without the service, and prints what works. Not part of the tests. The exit
 * code is 1 when the service would not serve.
 */
async function smoke(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: { record: { type: 'string' } }, allowPositionals: true });
  const [text = '', limit = '10', ...more] = positionals;
  const reference = parseChannelReference(text);
  if (!reference || more.length > 0 || !/^(?:[1-9][0-9]?|100)$/.test(limit)) throw new Error(USAGE);
  const environment = readEnvironment();
  Logger.overrideLogger({ log: toStandardError, warn: toStandardError, error: toStandardError });
  const recording = values.record === undefined ? null : new TrafficRecording();
  const report = await examine(environment, recording, reference, Number(limit));
  if (values.record !== undefined) await recording?.write(values.record, report);
  const videos = report.videos.map(({ videoId, title, outcome, lines }) => {
    const languages = Object.entries(lines).map(([languageCode, count]) => ` ${languageCode}: ${count} lines`);
    return `video ${videoId}  ${outcome}${languages.join(',')}  ${(title ?? '(no title)').slice(0, 60)}`;
  });
  const end =
    report.serves === null
      ? 'This channel does not exist: name another one.'
      : `The service would ${report.serves ? '' : 'not '}serve.`;
  process.stdout.write(`${[...report.findings, ...videos, end].join('\n')}\n`);
  if (!report.serves) process.exitCode = 1;
}

const toStandardError = (message: unknown) => void process.stderr.write(`${JSON.stringify(message)}\n`);

try {
  await smoke(process.argv.slice(2));
} catch (error) {
  const faults = error instanceof EnvironmentError ? error.faults : [error instanceof Error ? error.message : error];
  process.stderr.write(`${faults.join('; ').replaceAll('\n', ' ')}\n`);
  process.exitCode = 1;
}
