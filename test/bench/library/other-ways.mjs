import { rareWordOf, wordOf } from './texts.mjs';

/** Passages. */
export const SAMPLE = 50_000;

/** ILIKE over the texts, and the configuration that PostgreSQL has for every language, of the English ones. */
export async function otherWays(client) {
  const explain = async (statement) => {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${statement}`);
    const [{ Plan: top, 'Execution Time': ms }] = rows[0]['QUERY PLAN'];
    return { ms, blocks: top['Shared Hit Blocks'] + top['Shared Read Blocks'] };
  };
  await client.query('ANALYZE spoken');
  const ilike = {};
  for (const [name, word] of [
    ['a rare word', rareWordOf('en')],
    ['a common word', wordOf('en', 0)],
  ])
    ilike[name] = await explain(`SELECT text FROM spoken WHERE text ILIKE '%${word}%'`);
  const sample = `(SELECT text FROM spoken WHERE language = 'en' LIMIT ${SAMPLE})`;
  await client.query(`CREATE TABLE simple AS SELECT text, to_tsvector('simple', text) AS words FROM ${sample} sample`);
  await client.query('CREATE INDEX simple_words ON simple USING gin (words)');
  await client.query(`CREATE TABLE ours AS SELECT words FROM library_passages WHERE language = 'en' LIMIT ${SAMPLE}`);
  await client.query('CREATE INDEX ours_words ON ours USING gin (words)');
  const { rows } = await client.query(`
    SELECT pg_relation_size('simple_words')::double precision AS gin, pg_relation_size('ours_words')::double precision AS our_gin,
           (SELECT sum(pg_column_size(words)) FROM ours)::double precision AS our_words,
           sum(pg_column_size(words))::double precision AS words, sum(octet_length(text))::double precision AS spoken FROM simple`);
  const searches = [];
  await client.query('ANALYZE simple; ANALYZE ours');
  for (const [table, name] of [
    ['simple', 'simple'],
    ['ours', 'the service'],
  ])
    for (const [what, ...ranks] of [
      ['a word of 1 in 1,000', 5_000],
      ['two common words', 0, 5],
    ]) {
      const condition = ranks.map((rank) => `'${wordOf('en', rank)}'`).join(' & ');
      const statement = `SELECT words FROM ${table} WHERE words @@ '${condition.replaceAll("'", "''")}'::tsquery`;
      searches.push({ name: `${name}: ${what}`, ...(await explain(statement)) });
    }
  return { ilike, simple: { ...rows[0], searches } };
}
