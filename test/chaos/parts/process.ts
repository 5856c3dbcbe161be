import type { Part } from '../chaos-run.js';
import { clock } from './process/clock.js';
import { connections } from './process/connections.js';
import { crashes } from './process/crashes.js';
import { disk } from './process/disk.js';
import { readers } from './process/readers.js';
import { stops } from './process/stops.js';

/** The process: kills, stops, disk faults, clock jumps and slow connections. */
export const process: Part = async (chaosRun) => {
  // Concurrently, since each mostly waits for a start or a timeout.
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
    text:
      'The service is killed and stopped under load, started on disks that are read-only, too small or full, has its ' +
      'clock set forward and back, and receives connections that send and read almost nothing.',
    columns: ['fault', 'result'],
    rows: all.flatMap(({ rows }) => rows),
    checks: all.flatMap(({ checks }) => checks),
  };
};
