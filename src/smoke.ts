import { parseArgs } from 'node:util';
import { Logger } from '@nestjs/common';
import { EnvironmentError, readEnvironment } from './config/environment.js';
import { parseChannelReference } from './domain/channel-reference.js';
import { Doctor, type DoctorReport } from './platform/youtube/doctor/doctor.js';
import { TrafficRecording } from './platform/youtube/doctor/traffic-recording.js';

const USAGE = 'Usage: npm run smoke -- @handle [number of videos, 1 to 100, default 10] [--json] [--record DIRECTORY]';

/**
 * Checks each part of the requests to YouTube without the service, and prints what works and what to set. Not part of the
 * tests. The exit code is 1 when the service would not serve.
 */
async function smoke(words: readonly string[]): Promise<void> {
  const { reference, videosMax, json, record } = readArguments(words);
  const environment = readEnvironment();
  Logger.overrideLogger({ log: toStandardError, warn: toStandardError, error: toStandardError });
  const recording = record === undefined ? null : new TrafficRecording(environment);
  const report = await new Doctor(environment, recording).examine(reference, videosMax);
  if (record !== undefined) await recording?.write(record, report);
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `${linesOf(report).join('\n')}\n`);
  if (!report.serves) process.exitCode = 1;
}

function readArguments(words: readonly string[]) {
  const options = { json: { type: 'boolean', default: false }, record: { type: 'string' } } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true });
    const [text = '', limit = '10', ...more] = positionals;
    const reference = parseChannelReference(text);
    if (reference && more.length === 0 && values.record !== '' && /^(?:[1-9][0-9]?|100)$/.test(limit))
      return { ...values, reference, videosMax: Number(limit) };
  } catch {
    // An unknown option, or a missing directory.
  }
  throw new Error(USAGE);
}

/** The report as lines for a terminal. */
function linesOf({ serves, checks, videos, advice }: DoctorReport): string[] {
  return [
    ...checks.map(
      ({ area, subject, works, detail }) =>
        `${works ? 'ok    ' : 'FAILED'}  ${area.padEnd(10)}  ${subject.padEnd(12)}  ${detail}`,
    ),
    ...videos.map(({ videoId, title, outcome, lines }) => {
      const languages = Object.entries(lines).map(([languageCode, count]) => ` ${languageCode}: ${count} lines`);
      return `video   ${videoId}  ${outcome}${languages.join(',')}  ${(title ?? '(no title)').slice(0, 60)}`;
    }),
    ...advice.map((each) => `set     ${each}`),
    serves ? 'The service would serve.' : 'The service would not serve.',
  ];
}

/** A failure in one line, without a stack. */
function lineOfError(error: unknown): string {
  if (error instanceof EnvironmentError) return error.faults.join('; ');
  return error instanceof Error ? error.message : String(error);
}

const toStandardError = (message: unknown) => void process.stderr.write(`${JSON.stringify(message)}\n`);

try {
  await smoke(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${lineOfError(error).replaceAll('\n', ' ')}\n`);
  process.exitCode = 1;
}
