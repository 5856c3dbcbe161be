import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Lets PostgreSQL log each statement with the blocks that it read, those of the functions that it called included. Only
 * statements that end successfully are logged.
 */
export const LOGGING = [
  'session_preload_libraries=auto_explain',
  ...['log_min_duration=0', 'log_analyze=on', 'log_buffers=on', 'log_timing=off', 'log_format=json'].map(
    (setting) => `auto_explain.${setting}`,
  ),
  'auto_explain.log_parameter_max_length=0',
  'logging_collector=on',
  'log_destination=jsonlog',
  'log_directory=log',
  'log_filename=growth.log',
  'log_rotation_age=0',
  'log_rotation_size=0',
];
/** The name by which the service connects. */
export const APPLICATION = 'channel-transcripts';

/** Marks the runs of a statement that returned nothing: how many of them there are is chance, and they read less. */
const NO_ROWS = ' -- no rows';

/** The log of the statements that the service ran. */
export class StatementLog {
  #client;
  #file;

  /** @param client a connection whose statements are not logged */
  constructor(client, dataDirectory) {
    this.#client = client;
    this.#file = join(dataDirectory, 'log/growth.json');
  }

  /**
   * The statements that the service ran during some work.
   *
   * @returns {Promise<Map<string, { runs: number, first: number, typical?: number, most?: number }>>} by text, and apart when they
   * returned no rows, the blocks that were read by the most expensive first run of a connection, and by the lower quartile and the most expensive one of the later
   * runs
   */
  async during(work) {
    return summaryOf(await this.plansDuring(work));
  }

  /** The plan of each statement that the service ran during some work, in their order. */
  async plansDuring(work) {
    const start = (await stat(this.#file)).size;
    await work();
    const marker = randomUUID();
    await this.#client.query(
      `SET auto_explain.log_min_duration = 0; SELECT '${marker}'; SET auto_explain.log_min_duration = -1`,
    );
    for (;;) {
      const { lines, isComplete } = await this.#read(start, marker);
      if (isComplete) return lines.flatMap((line) => planOf(line) ?? []);
      await sleep(100);
    }
  }

  async #read(start, marker) {
    const lines = [];
    for await (const line of createInterface({ input: createReadStream(this.#file, { start }) })) {
      if (line.includes(marker)) return { lines, isComplete: true };
      if (line.includes(`"application_name":"${APPLICATION}"`)) lines.push(line);
    }
    return { lines, isComplete: false };
  }
}

/** Undefined for a line that is about something else. */
function planOf(line) {
  const { message, pid } = JSON.parse(line);
  const [, ms, plan] = /^duration: ([\d.]+) ms {2}plan:\n(.*)$/s.exec(message) ?? [];
  if (plan === undefined) return undefined;
  const { 'Query Text': text, Plan: top } = JSON.parse(plan);
  return { pid, ms: Number(ms), text, top, blocks: top['Shared Hit Blocks'] + top['Shared Read Blocks'] };
}

/**
 * The first run of a statement on a connection also reads the catalog, to prepare the functions that it calls. It is kept
 * apart from the later ones, and only compared when no connection ran the statement twice. A later run can be the first that needs some
 * statement of a function, so the lower quartile is compared: what grows makes every run more expensive.
 */
function summaryOf(plans) {
  const statements = new Map();
  for (const { pid, text, top, blocks } of plans) {
    const isEmpty = top['Actual Rows'] === 0 && top['Node Type'] !== 'ModifyTable';
    const key = text.replace(/\s+/g, ' ').trim() + (isEmpty ? NO_ROWS : '');
    const found = statements.get(key) ?? { connections: new Set(), first: [], later: [] };
    statements.set(key, found);
    const runs = found.connections.has(pid) ? found.later : found.first;
    runs.push(blocks);
    found.connections.add(pid);
  }
  return new Map(
    [...statements].map(([key, { first, later }]) => {
      const sorted = later.sort((one, other) => one - other);
      const typical = sorted[(sorted.length - 1) >> 2];
      return [key, { runs: first.length + later.length, first: Math.max(...first), typical, most: sorted.at(-1) }];
    }),
  );
}

/** Whether it is the runs of a statement that returned nothing. */
export function isOfNoRows(text) {
  return text.endsWith(NO_ROWS);
}

/** A statement in a few words: what it does, and the tables and functions that it names. */
export function labelOf(text) {
  const [verb] = /\w+/.exec(text.replace(/^WITH .*?\) (?=SELECT|UPDATE|DELETE|INSERT)/, '')) ?? [''];
  const names = text.matchAll(/\b(?:FROM|JOIN|INTO|UPDATE|SELECT) "?([a-z]\w+)"?(?= ?\(| |$)/g);
  const named = [...new Set([...names].map(([, name]) => name))].slice(0, 3).join(', ');
  return `${verb} ${named}${isOfNoRows(text) ? ': no rows' : ''}`;
}
