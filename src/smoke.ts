import { Logger } from '@nestjs/common';
import { EnvironmentError, readEnvironment } from './config/environment.js';
import { parseChannelReference } from './domain/channel-reference.js';
import { Doctor } from './platform/youtube/doctor/doctor.js';
import { linesOf } from './platform/youtube/doctor/doctor-report.js';
import { TrafficRecording } from './platform/youtube/doctor/traffic-recording.js';

const USAGE = 'Usage: npm run smoke -- @handle [number of videos, 1 to 100, default 10] [--json] [--record DIRECTORY]';
const VIDEOS_DEFAULT = 10;

/** Why the check could not be made, in one line. */
class SmokeError extends Error {}

/**
 * Checks each part of the requests to YouTube without the service, and prints what works and what to set. Not part of the
 * tests. The exit code is 1 when the service would not serve.
 */
async function smoke(words: readonly string[]): Promise<void> {
  const { reference, videosMax, json, directory } = readArguments(words);
  const environment = readEnvironment();
  Logger.overrideLogger({ log: toStandardError, warn: toStandardError, error: toStandardError });
  const recording = directory === null ? null : new TrafficRecording(environment);
  const report = await new Doctor({ environment, reference, videosMax, listener: recording }).examine();
  if (recording && directory !== null) await recording.write(directory, report);
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `${linesOf(report).join('\n')}\n`);
  if (!report.serves) process.exitCode = 1;
}

function readArguments(words: readonly string[]) {
  const json = words.includes('--json');
  const recordAt = words.indexOf('--record');
  const directory = recordAt < 0 ? null : (words[recordAt + 1] ?? '');
  const others = words.filter(
    (word, index) => word !== '--json' && (recordAt < 0 || (index !== recordAt && index !== recordAt + 1)),
  );
  const [text, limit = String(VIDEOS_DEFAULT), ...more] = others;
  const reference = text === undefined ? undefined : parseChannelReference(text);
  if (!reference || more.length > 0 || directory === '' || !/^(?:[1-9][0-9]?|100)$/.test(limit))
    throw new SmokeError(USAGE);
  return { reference, videosMax: Number(limit), json, directory };
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
