import type { Part } from '../chaos-run.js';
import { clock } from './process/clock.js';
import { connections } from './process/connections.js';
import { crashes } from './process/crashes.js';
import { disk } from './process/disk.js';
import { readers } from './process/readers.js';
import { stops } from './process/stops.js';

/** The process killed, stopped, on a bad disk, under a clock that jumps, and beset by slow connections. */
export const process: Part = async (chaosRun) => {
  // Side by side, since most of each is waiting for a start or a limit.
  const [killed, beset] = await Promise.all([crashes(chaosRun), connections(chaosRun)]);
  chaosRun.say('stops, disks and clocks');
  const [stopped, rest] = await Promise.all([
    stops(chaosRun),
    disk(chaosRun).then(async (onDisk) => [onDisk, await clock(chaosRun)]),
  ]);
  // Alone, because its memory is measured.
  const unread = await readers(chaosRun);
  const all = [killed, stopped, ...rest, beset, unread];
  return {
    title: 'The process',
    text:
      'The service was killed and stopped under load, started on disks that were read-only, too small or filled up, had its ' +
      'clock set forward and back, and was beset by connections that send and read next to nothing.',
    columns: ['what', 'seen'],
    rows: all.flatMap(({ rows }) => rows),
    promised: all.flatMap(({ promised }) => promised),
  };
};
