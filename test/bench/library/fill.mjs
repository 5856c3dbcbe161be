import { readFile } from 'node:fs/promises';
import { deflate } from '../../../dist/modules/transcripts/cache/transcript-text.js';
import { NO_DETAILS, unlistedVideo } from '../../../dist/modules/domain/transcript.js';
import { keptParameters, keptText } from '../../../dist/modules/transcripts/kept/kept-text.js';
import { textOf } from '../../../dist/modules/transcripts/kept/passages.js';
import { LANGUAGES, segmentsOf } from './texts.mjs';

const MINUTES = 30;
const CHANNELS = 20;
const HOUR_MS = 3_600_000;
/** Above the IDs of the texts that are copied. */
const IDS_OF_COPY = 1_000_000;
const KEEP = 'SELECT library_keep(job, $2, $3, 1e15) FROM jobs job WHERE id = $1';

/**
 * Fills libraries. A part of the texts is kept as the service does it; the others are copies with other IDs and times, so that all
 * words are so many times as frequent.
 */
export class LibraryFilling {
  #client;
  #number = 0;
  /** When the last text was published: each is older than the one before. */
  #publishedAt = Date.now();
  /** How many texts of each language there are. */
  #texts = Object.fromEntries(Object.keys(LANGUAGES).map((language) => [language, 0]));

  /** @param client a connection of a superuser, which fills the tables */
  constructor(client) {
    this.#client = client;
  }

  /** The texts of passages as they are spoken, in UTF-8, which other ways to search them are compared with. */
  prepare() {
    return this.#client.query('CREATE TABLE spoken (language text NOT NULL, text text NOT NULL)');
  }

  /** Keeps texts of 30 minutes until there are so many passages, in all languages by their shares. */
  async keepPassages(jobId, passages, { isCompared = false } = {}) {
    const withRareWord = new Set();
    this.#publishedAt = Date.now();
    for (let count = 0; count < passages;) {
      const language = this.#nextLanguage();
      const hasRareWord = isCompared && !withRareWord.has(language);
      if (hasRareWord) withRareWord.add(language);
      const { segments, ...fetched } = await this.fetchText(language, MINUTES, hasRareWord);
      const text = await keptForm(fetched);
      await this.#client.query(KEEP, [jobId, ...parametersOf(text)]);
      count += text.passages.length;
      if (!isCompared) continue;
      const spoken = text.passages.map(({ first, end }) => textOf(segments, first, end));
      await this.#client.query('INSERT INTO spoken SELECT $1, unnest($2::text[])', [language, spoken]);
    }
  }

  #nextLanguage() {
    const missing = ([language, { share }]) => (this.#texts[language] + 1) / share;
    const [[language]] = Object.entries(LANGUAGES).sort((one, other) => missing(one) - missing(other));
    this.#texts[language] += 1;
    return language;
  }

  /** A text as it is fetched. */
  async fetchText(language, minutes, hasRareWord = false) {
    const number = (this.#number += 1);
    const segments = segmentsOf(language, number, minutes, hasRareWord);
    const transcript = await deflate(Buffer.from(JSON.stringify({ [language]: segments })));
    const channel = { id: channelId(number % CHANNELS), name: 'Bench', handle: `@bench-${number % CHANNELS}` };
    const publishedAt = new Date((this.#publishedAt -= 10 * HOUR_MS)).toISOString();
    const details = { ...NO_DETAILS, title: `Text ${number}`, publishedAt, channel };
    const upload = unlistedVideo(`v${String(number).padStart(10, '0')}`);
    return { segments, upload, outcome: { ok: true, details, transcript, tracks: {} }, language, channel };
  }

  /** Adds so many copies of what an organization keeps, without indexes, which are created again afterwards. */
  async copy(organizationId, copies) {
    const { rows: indexes } = await this.#client.query(
      `SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'library_passages'`,
    );
    for (const { indexname } of indexes) await this.#client.query(`DROP INDEX ${indexname}`);
    for (let copy = 1; copy <= copies; copy += 1) {
      const [ids, later] = [copy * IDS_OF_COPY, `interval '${copy} hours'`];
      await this.#insertCopies('library_texts', organizationId, 'id', {
        ...{ id: `id + ${ids}`, video_id: `overlay(video_id placing '${copy}_' from 1 for 2)` },
        published_at: `published_at + ${later}`,
      });
      await this.#insertCopies('library_passages', organizationId, 'text_id', {
        text_id: `text_id + ${ids}`,
        published_at: `published_at + ${later}`,
      });
    }
    await this.#client.query('INSERT INTO spoken SELECT spoken.* FROM spoken, generate_series(1, $1)', [copies]);
    await this.#client.query(`SET maintenance_work_mem = '1GB'`);
    for (const { indexdef } of indexes) await this.#client.query(indexdef);
  }

  async #insertCopies(table, organizationId, id, values) {
    const { rows } = await this.#client.query(
      'SELECT column_name FROM information_schema.columns WHERE table_name = $1',
      [table],
    );
    const names = rows.map(({ column_name: name }) => name);
    await this.#client.query(
      `INSERT INTO ${table} (${names.join(', ')}) OVERRIDING SYSTEM VALUE
         SELECT ${names.map((name) => values[name] ?? name).join(', ')} FROM ${table}
           WHERE organization_id = $1 AND ${id} < ${IDS_OF_COPY} ORDER BY ${id}`,
      [organizationId],
    );
  }

  /** What a text costs when it is kept: the median of some, in milliseconds of CPU of this process and of its backend. */
  async costOfKeeping(jobId, language, minutes, texts) {
    const { rows } = await this.#client.query('SELECT pg_backend_pid() AS pid');
    const cost = { serviceMs: 0, databaseMs: 0 };
    // One that is not counted, for what is compiled and prepared once.
    for (let text = 0; text <= texts; text += 1) {
      const fetched = await this.fetchText(language, minutes);
      const [before, ofDatabase] = [process.cpuUsage(), await cpuMsOf(rows[0].pid)];
      const parameters = parametersOf(await keptForm(fetched));
      const { user, system } = process.cpuUsage(before);
      await this.#client.query(KEEP, [jobId, ...parameters]);
      if (text === texts) await this.#client.query(`SELECT gin_clean_pending_list('library_passages_words')`);
      if (text === 0) continue;
      cost.serviceMs += (user + system) / 1000 / texts;
      cost.databaseMs += ((await cpuMsOf(rows[0].pid)) - ofDatabase) / texts;
    }
    return cost;
  }
}

/** In which the service keeps a text. */
const keptForm = ({ upload, outcome, language, channel }) => keptText(upload, outcome, [language], channel);

function parametersOf(text) {
  const { kept, entries } = keptParameters([text]);
  return [kept, entries];
}

export const channelId = (number) => `UC${String(number).padStart(22, '0')}`;

const NS_PER_MS = 1e6;

/** The CPU time of a process, which Linux alone states so exactly; elsewhere NaN. */
export async function cpuMsOf(pid) {
  const stat = await readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => 'NaN');
  return Number(stat.split(' ')[0]) / NS_PER_MS;
}
