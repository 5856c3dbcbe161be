import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { startServer } from '../../database/programs/server.mjs';
import { startService } from '../environment.mjs';
import { goal, median, percentile } from '../figures.mjs';
import { LOGGING, StatementLog } from '../growth/statements.mjs';
import { channelId, LibraryFilling } from '../library/fill.mjs';
import { rareWordOf, wordOf } from '../library/texts.mjs';
import { ADMIN_TOKEN, makeOrganization } from '../subscriptions.mjs';

/** Passages that are kept by the service's statement; each of the big library has copies beside it. */
const SIZE = { passages: 100_000, copies: 9, ofOthers: 2_000, texts: 30 };
const SIZE_QUICK = { passages: 3_000, copies: 2, ofOthers: 150, texts: 3 };
const OTHERS = 9;
const RUNS = 15;
const SECONDS_MAX = 6;
/** Nothing is to be recovered, and nothing else changes the tables. */
const SERVER = ['fsync=off', 'full_page_writes=off', 'wal_level=minimal', 'max_wal_senders=0', 'max_wal_size=8GB'];
const SETTINGS = [...SERVER, 'checkpoint_timeout=1h', 'autovacuum=off', 'shared_buffers=2GB'];
const LIMIT = 20;

const en = (...ranks) => ranks.map((rank) => wordOf('en', rank)).join(' ');
const zh = (...ranks) => ranks.map((rank) => wordOf('zh', rank)).join('');
/** `ms` at most in the database. */
const SEARCHES = [
  { name: 'a rare word', q: rareWordOf('en'), ms: 10 },
  { name: 'a rare word, Cyrillic', q: rareWordOf('ru'), ms: 10 },
  { name: 'a rare word, Chinese', q: rareWordOf('zh'), ms: 10 },
  { name: 'a word of 1 in 1,000 passages', q: en(5_000) },
  { name: 'a word of 1 in 25 passages', q: en(100) },
  { name: 'a common word', q: en(0) },
  { name: 'two common words', q: en(0, 5), ms: 100 },
  { name: 'two words of 1 in 5 passages', q: en(20, 30), ms: 100 },
  { name: 'two Chinese pairs of characters', q: `${zh(0, 1)} ${zh(2, 3)}` },
  { name: 'a phrase', q: `"${en(10, 25)}"`, ms: 50 },
  { name: 'a phrase of rarer words', q: `"${en(100, 200)}"`, ms: 50 },
  { name: 'a beginning', q: `${en(3_000).slice(0, 3)}*`, ms: 50 },
  { name: 'with channel', q: en(50), query: `&channel=${channelId(3)}`, ms: 50 },
  { name: 'with language', q: en(50), query: '&language=en', ms: 50 },
  { name: 'with another language', q: en(50), query: '&language=ru', ms: 50 },
  { name: 'with publishedAfter', q: en(50), query: `&publishedAfter=${daysAgo(90)}`, ms: 50 },
  // The most that a search can cost.
  { name: 'five of the commonest words', q: en(0, 1, 2, 3, 4) },
  { name: 'a phrase of five common words', q: `"${en(4, 6, 8, 10, 12)}"` },
  { name: 'the commonest word without the next', q: `${en(0)} -${en(1)}` },
  { name: 'two words never in one passage', q: `${en(0)} ${wordOf('ru', 0)}` },
];
const SORTS = ['relevance', 'newest'];

/** Searches of a library of a million passages among others, and what it costs to keep a text in it. */
export async function library(bench) {
  const size = bench.quick ? SIZE_QUICK : SIZE;
  const dataDir = join(bench.folder, 'library');
  await mkdir(dataDir);
  const server = await startServer(dataDir, [...SETTINGS, ...LOGGING]);
  const client = new pg.Client({ connectionString: server.url });
  try {
    await client.connect();
    await client.query('SET auto_explain.log_min_duration = -1; SET jit = off');
    const service = await startService(bench.folder, {
      DATABASE_URL: server.url,
      ADMIN_TOKEN,
      JOB_CONCURRENCY: '0',
    });
    try {
      const log = new StatementLog(client, join(dataDir, 'postgres'));
      return report(await measure(bench, { size, client, service, log }));
    } finally {
      await service.stop();
    }
  } finally {
    await client.end();
    await server.stop();
  }
}

async function measure(bench, { size, client, service, log }) {
  const filling = new LibraryFilling(client);
  await filling.prepare();
  const searcher = new Searcher(service, log);
  const others = [];
  bench.say(`library: ${OTHERS} libraries of ${size.ofOthers} passages`);
  for (let number = 0; number < OTHERS; number += 1) {
    const other = await makeLibrary(service, client);
    await filling.keepPassages(other.jobId, size.ofOthers);
    others.push(other);
  }
  const big = await makeLibrary(service, client);
  await client.query('VACUUM ANALYZE');
  const common = { name: 'a common word', q: en(5), sort: 'relevance' };
  const small = { before: await searcher.run(others[4].key, common) };
  bench.say(`library: one of ${size.passages * (1 + size.copies)} passages`);
  await filling.keepPassages(big.jobId, size.passages, { isCompared: true });
  bench.say('library: copies, and their indexes');
  await filling.copy(big.organizationId, size.copies);
  await client.query('VACUUM ANALYZE');
  const sizes = (await client.query(SIZES)).rows[0];
  bench.say('library: searches');
  small.after = await searcher.run(others[4].key, common);
  const searches = [];
  for (const search of SEARCHES)
    for (const sort of SORTS) {
      const figures = await searcher.run(big.key, { ...search, sort });
      bench.say(`library: ${search.name}, ${sort}: ${JSON.stringify(figures)}`);
      searches.push({ ...search, sort, ...figures });
    }
  bench.say('library: texts that are kept');
  const kept = [];
  for (const [language, minutes] of [
    ['en', 10],
    ['zh', 10],
    ['en', 60],
    ['zh', 60],
  ])
    kept.push({ language, minutes, ...(await filling.costOfKeeping(big.jobId, language, minutes, size.texts)) });
  bench.say('library: other ways to search');
  return { searches, small, kept, sizes, others: await otherWays(client), problems: searcher.problems };
}

/** An organization and a job of it, whose results are kept and which is not run. */
async function makeLibrary(service, client) {
  const key = await makeOrganization(service);
  const response = await fetch(`http://127.0.0.1:${service.port}/jobs`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ channel: '@bench', keep: true }),
  });
  if (response.status !== 202 && response.status !== 201) throw new Error(`POST /jobs: ${response.status}: ${await response.text()}`);
  const { id: jobId } = await response.json();
  const { rows } = await client.query('SELECT organization_id FROM jobs WHERE id = $1', [jobId]);
  return { key, jobId, organizationId: rows[0].organization_id };
}

const SIZES = `
  SELECT count(*)::integer AS passages, sum(pg_column_size(words))::double precision AS words,
         pg_relation_size('library_passages_words')::double precision AS gin,
         pg_total_relation_size('library_passages')::double precision AS whole,
         (SELECT sum(octet_length(text)) FROM spoken)::double precision AS spoken
    FROM library_passages WHERE organization_id = (SELECT organization_id FROM library_passages GROUP BY 1 ORDER BY count(*) DESC LIMIT 1)`;

const STATEMENT = /\bFROM library_passages\b/;

/** Searches over HTTP, of whose statement PostgreSQL logs the plan. */
class Searcher {
  problems = [];
  #service;
  #log;

  constructor(service, log) {
    this.#service = service;
    this.#log = log;
  }

  async run(key, { name, q, sort, query = '' }) {
    const runs = [];
    const until = performance.now() + SECONDS_MAX * 1000;
    // The first one warms up.
    while (runs.length < 2 || (runs.length <= RUNS && performance.now() < until)) {
      let [ms, response] = [0];
      const plans = await this.#log.plansDuring(async () => {
        const startedAt = performance.now();
        const path = `/library/search?q=${encodeURIComponent(q)}&sort=${sort}&limit=${LIMIT}${query}`;
        response = await fetch(`http://127.0.0.1:${this.#service.port}${path}`, {
          headers: { Authorization: `Bearer ${key}` },
        });
        response = { status: response.status, body: await response.json() };
        ms = performance.now() - startedAt;
      });
      const plan = plans.find(({ text }) => STATEMENT.test(text));
      if (response.status !== 200 || !plan) {
        this.problems.push(`${name}, ${sort}: ${response.status}`);
        return { total: NaN, indexes: '', ms: NaN, p95: NaN, http: NaN, blocks: NaN, looked: NaN };
      }
      runs.push({ ms: plan.ms, http: ms, plan, body: response.body });
    }
    runs.shift();
    const [{ plan, body }] = runs;
    const nodes = nodesOf(plan.top);
    if (nodes.some((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'library_passages'))
      this.problems.push(`${name}, ${sort}: the plan reads all passages`);
    const indexes = [...new Set(nodes.flatMap((node) => /library_passages_(\w+)/.exec(node['Index Name'])?.[1] ?? []))];
    const ms = runs.map((run) => run.ms);
    return {
      ...{ total: body.total, indexes: indexes.join(', '), ms: median(ms), p95: percentile(ms, 0.95) },
      ...{ http: median(runs.map(({ http }) => http)), blocks: plan.blocks, looked: lookedAt(nodes) },
    };
  }
}

const nodesOf = (node) => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** The passages whose rows were read. */
const lookedAt = (nodes) =>
  nodes
    .filter((node) => node['Relation Name'] === 'library_passages')
    .map((node) => {
      const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
      return (node['Actual Rows'] + removed) * node['Actual Loops'];
    })
    .reduce((sum, rows) => sum + rows, 0);

/** ILIKE over the texts, and the configuration that PostgreSQL has for every language, of the English ones. */
async function otherWays(client) {
  const explain = async (statement) => {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${statement}`);
    const [{ Plan: top, 'Execution Time': ms }] = rows[0]['QUERY PLAN'];
    return { ms, blocks: top['Shared Hit Blocks'] + top['Shared Read Blocks'] };
  };
  await client.query('ANALYZE spoken');
  const ilike = {};
  for (const [name, word] of [
    ['a rare word', rareWordOf('en')],
    ['a common word', en(0)],
  ])
    ilike[name] = await explain(`SELECT text FROM spoken WHERE text ILIKE '%${word}%'`);
  const sample = `(SELECT text FROM spoken WHERE language = 'en' LIMIT 50000)`;
  await client.query(`CREATE TABLE simple AS SELECT text, to_tsvector('simple', text) AS words FROM ${sample} sample`);
  await client.query('CREATE INDEX simple_words ON simple USING gin (words)');
  await client.query(`CREATE TABLE ours AS SELECT words FROM library_passages WHERE language = 'en' LIMIT 50000`);
  await client.query('CREATE INDEX ours_words ON ours USING gin (words)');
  const { rows } = await client.query(`
    SELECT pg_relation_size('simple_words')::double precision AS gin, pg_relation_size('ours_words')::double precision AS our_gin,
           (SELECT sum(pg_column_size(words)) FROM ours)::double precision AS our_words,
           sum(pg_column_size(words))::double precision AS words, sum(octet_length(text))::double precision AS spoken FROM simple`);
  const { ms } = await explain(`SELECT count(to_tsvector('simple', text)) FROM ${sample} sample`);
  return { ilike, simple: { ...rows[0], msOfPassage: ms / 50_000 } };
}

function daysAgo(days) {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

function report(measured) {
  console.log(JSON.stringify(measured, null, 1));
  return { title: 'Library', tables: [], goals: [], failures: measured.problems };
}
