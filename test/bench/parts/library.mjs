import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { startServer } from '../../database/programs/server.mjs';
import { startService } from '../environment.mjs';
import { goal } from '../figures.mjs';
import { LOGGING, StatementLog } from '../growth/statements.mjs';
import { channelId, LibraryFilling } from '../library/fill.mjs';
import { otherWays, SAMPLE } from '../library/other-ways.mjs';
import { Searcher } from '../library/searcher.mjs';
import { rareWordOf, wordOf } from '../library/texts.mjs';
import { ADMIN_TOKEN, makeOrganization } from '../subscriptions.mjs';

/** Passages that are kept by the service's statement; each of the big library has copies beside it. */
const SIZE = { passages: 100_000, copies: 9, ofOthers: 2_000, texts: 30, runs: 15 };
const SIZE_QUICK = { passages: 3_000, copies: 2, ofOthers: 150, texts: 3, runs: 2 };
const OTHERS = 9;
/** Nothing is to be recovered, and nothing else changes the tables. */
const SERVER = ['fsync=off', 'full_page_writes=off', 'wal_level=minimal', 'max_wal_senders=0', 'max_wal_size=8GB'];
const SETTINGS = [...SERVER, 'checkpoint_timeout=1h', 'autovacuum=off', 'shared_buffers=2GB'];

const en = (...ranks) => ranks.map((rank) => wordOf('en', rank)).join(' ');
const zh = (...ranks) => ranks.map((rank) => wordOf('zh', rank)).join('');
/** `ms` of CPU of PostgreSQL at most: on an idle machine a search takes as long. */
const SEARCHES = [
  { name: 'a rare word', q: rareWordOf('en'), ms: 10 },
  { name: 'a rare word, Cyrillic', q: rareWordOf('ru'), ms: 10 },
  { name: 'a rare word, Chinese', q: rareWordOf('zh'), ms: 10 },
  { name: 'a word of 1 in 1,000 passages', q: en(5_000) },
  { name: 'a word of 1 in 25 passages', q: en(100) },
  { name: 'a common word', q: en(0) },
  { name: 'two common words', q: en(0, 5), ms: 50 },
  { name: 'two words of 1 in 6 and 9 passages', q: en(20, 30), ms: 50 },
  { name: 'two Chinese pairs of characters', q: `${zh(0, 1)} ${zh(2, 3)}` },
  { name: 'a phrase of words of 1 in 4 and 8', q: `"${en(10, 25)}"`, ms: 100 },
  { name: 'a phrase of rarer words', q: `"${en(100, 200)}"`, ms: 50 },
  { name: 'a beginning', q: `${en(3_000).slice(0, 3)}*`, ms: 50 },
  { name: 'with channel', q: en(50), query: `&channel=${channelId(3)}`, ms: 50 },
  { name: 'with language', q: en(50), query: '&language=en', ms: 50 },
  { name: 'with publishedAfter', q: en(50), query: `&publishedAfter=${daysAgo(90)}`, ms: 50 },
  // The most that a search can cost.
  { name: 'five of the commonest words', q: en(0, 1, 2, 3, 4) },
  { name: 'a phrase of five of the commonest', q: `"${en(0, 1, 2, 3, 0)}"`, ms: 100 },
  { name: 'a phrase of five common words', q: `"${en(4, 6, 8, 10, 12)}"`, ms: 100 },
  { name: 'the commonest word without the next', q: `${en(0)} -${en(1)}` },
  { name: 'a language without the word', q: en(50), query: '&language=ru' },
  { name: 'two words never in one passage', q: `${en(0)} ${wordOf('ru', 0)}` },
];
const SORTS = ['relevance', 'newest'];
/** Of words that the big library has often, too. */
const SEARCHES_OF_SMALL = [
  { name: 'a common word', q: en(5) },
  { name: 'a word of 1 in 200 passages', q: en(800) },
  { name: 'a phrase', q: `"${en(10, 25)}"` },
];

/** Searches of a library of a million passages among others, and what it costs to keep a text in it. */
export async function library(bench) {
  const size = bench.quick ? SIZE_QUICK : SIZE;
  const dataDir = join(bench.folder, 'library');
  await mkdir(dataDir);
  const server = await startServer(dataDir, [...SETTINGS, ...LOGGING, 'auto_explain.log_nested_statements=on']);
  const client = new pg.Client({ connectionString: server.url });
  try {
    await client.connect();
    await client.query(
      'SET auto_explain.log_min_duration = -1; SET jit = off; SET max_parallel_workers_per_gather = 0',
    );
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
  const searcher = new Searcher(service, log, client, size.runs);
  const others = [];
  bench.say(`library: ${OTHERS} libraries of ${size.ofOthers} passages`);
  for (let number = 0; number < OTHERS; number += 1) {
    const other = await makeLibrary(service, client);
    await filling.keepPassages(other.jobId, size.ofOthers);
    others.push(other);
  }
  const big = await makeLibrary(service, client);
  await client.query('VACUUM ANALYZE');
  const { key: ofSmall } = others[4];
  const small = { passages: size.ofOthers, searches: [] };
  for (const search of SEARCHES_OF_SMALL)
    small.searches.push({ name: search.name, before: await searcher.run(ofSmall, { ...search, sort: 'relevance' }) });
  bench.say(`library: one of ${size.passages * (1 + size.copies)} passages`);
  await filling.keepPassages(big.jobId, size.passages, { isCompared: true });
  bench.say('library: copies, and their indexes');
  await filling.copy(big.organizationId, size.copies);
  await client.query('VACUUM ANALYZE');
  const sizes = (await client.query(SIZES, [big.organizationId])).rows[0];
  bench.say('library: searches');
  for (const [index, search] of SEARCHES_OF_SMALL.entries())
    small.searches[index].after = await searcher.run(ofSmall, { ...search, sort: 'relevance' });
  const searches = [];
  for (const search of SEARCHES)
    for (const sort of SORTS) {
      const figures = await searcher.run(big.key, { ...search, sort });
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
  if (!response.ok) throw new Error(`POST /jobs: ${response.status}: ${await response.text()}`);
  const { id: jobId } = await response.json();
  const { rows } = await client.query('SELECT organization_id FROM jobs WHERE id = $1', [jobId]);
  return { key, jobId, organizationId: rows[0].organization_id };
}

const SIZES = `
  SELECT count(*)::integer AS passages, sum(pg_column_size(words))::double precision AS words,
         pg_relation_size('library_passages_words')::double precision AS gin,
         pg_total_relation_size('library_passages')::double precision AS whole,
         (SELECT sum(octet_length(text)) FROM spoken)::double precision AS spoken,
         (SELECT sum(entry_bytes) FROM library_texts WHERE organization_id = $1)::double precision AS json
    FROM library_passages WHERE organization_id = $1`;

function daysAgo(days) {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

function report({ searches, small, kept, sizes, others, problems }) {
  const { spoken, json, passages } = sizes;
  const per = (bytes, of) => bytes / of;
  const { ilike, simple } = others;
  const worst = (name) => Math.max(...searches.filter((search) => search.name === name).map(({ cpu }) => cpu));
  return {
    title: `Library: ${passages} passages of one organization among ${OTHERS + 1}`,
    tables: [
      {
        title:
          'Searches over HTTP: CPU of the backend, with the other statements of the call; milliseconds of the statement; and of the call',
        columns: ['', 'sort', 'total', 'indexes', 'passages read', 'blocks', 'CPU ms', 'ms', 'p95', 'call ms'],
        rows: searches.map(({ name, sort, total, indexes, looked, blocks, cpu, ms, p95, http }) => [
          ...[name, sort, total, indexes, looked, blocks, cpu, ms, p95, http],
        ]),
      },
      {
        title: `A library of ${small.passages} passages: before the others are filled, and afterwards`,
        columns: ['', 'blocks before', 'blocks', 'ms before', 'ms'],
        rows: small.searches.map(({ name, before, after }) => [name, before.blocks, after.blocks, before.ms, after.ms]),
      },
      {
        title: 'A text that is kept: milliseconds of CPU',
        columns: ['', 'service', 'PostgreSQL'],
        rows: kept.map(({ language, minutes, serviceMs, databaseMs }) => [
          `${language}, ${minutes} minutes`,
          serviceMs,
          databaseMs,
        ]),
      },
      {
        title: 'Bytes',
        columns: ['', 'of the text as spoken', 'of the text as stored JSON'],
        rows: [
          ['index of words', per(sizes.gin, spoken), per(sizes.gin, json)],
          ['index and words', per(sizes.gin + sizes.words, spoken), per(sizes.gin + sizes.words, json)],
          ['passages with all indexes', per(sizes.whole, spoken), per(sizes.whole, json)],
        ],
      },
      {
        title: `Other ways: ILIKE over all texts, and English in the configuration simple (${SAMPLE} passages of each)`,
        columns: ['', 'ms', 'blocks'],
        rows: [
          ...Object.entries(ilike).map(([name, { ms, blocks }]) => [`ILIKE: ${name}`, ms, blocks]),
          ...simple.searches.map(({ name, ms, blocks }) => [name, ms, blocks]),
        ],
      },
      {
        title: 'English, bytes of the text as spoken',
        columns: ['', 'index', 'index and words'],
        rows: [
          ['simple', per(simple.gin, simple.spoken), per(simple.gin + simple.words, simple.spoken)],
          ['the service', per(simple.our_gin, simple.spoken), per(simple.our_gin + simple.our_words, simple.spoken)],
        ],
      },
    ],
    goals: [
      ...SEARCHES.filter(({ ms }) => ms).map(({ name, ms }) =>
        goal(name, worst(name), { atMost: ms, unit: ' ms of CPU' }),
      ),
      goal('the most expensive search of all', Math.max(...searches.map(({ cpu }) => cpu)), {
        atMost: 1_000,
        unit: ' ms',
      }),
      goal('index and words, bytes of the text as stored', per(sizes.gin + sizes.words, json), { atMost: 1.5 }),
      // An hour has 1,500 segments.
      ...kept
        .filter(({ minutes }) => minutes === 60)
        .map(({ language, serviceMs, databaseMs }) =>
          goal(`CPU to keep an hour, ${language}`, serviceMs + databaseMs, {
            atMost: language === 'zh' ? 40 : 10,
            unit: ' ms',
          }),
        ),
      goal(
        'blocks of a small library beside the big one, against before',
        Math.max(...small.searches.map(({ before, after }) => after.blocks / before.blocks)),
        { atMost: 1.5 },
      ),
    ],
    failures: problems.map((problem) => `library: ${problem}`),
  };
}
