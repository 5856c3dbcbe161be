import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { passagesOf } from '../../src/transcripts/kept/passages.js';
import { parseQuery } from '../../src/library/search-query.js';
import { normalizedText } from '../../src/transcripts/kept/words.js';
import { startService, type TestService } from '../harness/service.js';
import { createJob, waitForJob } from '../jobs/job-requests.js';
import { matchedTexts, search } from './library-requests.js';

let service: TestService;
/** Of an organization that keeps videos in six languages. */
let key = '';

const VIDEOS = [
  'hl-dinghy__',
  'hl-sharp___',
  'hl-keeper__',
  'hl-pearl___',
  'hl-rope____',
  'hl-foghorn_',
  'hl-nets____',
];

beforeAll(async () => {
  service = await startService();
  ({ key } = await service.organization());
  const body = { videos: VIDEOS, languages: ['en', 'de', '*'], keep: true, labels: { topic: 'boats' } };
  await waitForJob(service, key, await createJob(service, key, body));
  await waitForJob(service, key, await createJob(service, key, { channel: '@tidewater', keep: true }));
});
afterAll(() => service.close());

const videosOf = async (q: string, query = ''): Promise<string[]> => [
  ...new Set((await search(service, key, q, query)).results.map(({ videoId }) => videoId)),
];

describe('a search', () => {
  it.each([
    ['mussels', ['mussels'], 'tw-chowder_', 'en'],
    ['"sturm"', [], '', ''],
    ['großen STURMS', ['großen', 'Sturms'], 'hl-keeper__', 'de'],
    ['"Lampe bei Dämmerung"', ['Lampe bei Dämmerung'], 'hl-keeper__', 'de'],
    ['dammerung', ['Dämmerung'], 'hl-keeper__', 'de'],
    ['اللولو', ['اللؤلؤ'], 'hl-pearl___', 'ar'],
    ['القوارب', ['القوارب'], 'hl-pearl___', 'ar'],
    ['جده', ['جدّه'], 'hl-pearl___', 'ar'],
    ['חבל', ['חבל'], 'hl-rope____', 'iw'],
    ['霧笛の', ['霧笛の'], 'hl-foghorn_', 'ja'],
    ['五キロ先', ['五キロ先'], 'hl-foghorn_', 'ja'],
    ['补渔网', ['补渔网'], 'hl-nets____', 'zh-Hans'],
    ['"怎样补渔网先把"', [], '', ''],
  ])('of %j finds %j, whatever its script', async (q, matches, videoId, language) => {
    const found = await search(service, key, q);
    if (videoId === '') return expect(found).toEqual({ results: [], next: null, total: 0 });
    expect(matchedTexts(found)[0]).toEqual(expect.arrayContaining(matches));
    expect(found.results[0]).toMatchObject({ videoId, language });
  });

  it('leads to the second of the first match', async () => {
    const { results } = await search(service, key, '"音で海を見る"');
    const { transcript } = (await service.get('/videos/hl-foghorn_/transcript', key)).body as {
      transcript: { ja: { text: string; start: number }[] };
    };
    const segment = transcript.ja.find(({ text }) => text.includes('音で海を見る'));
    expect(segment?.start).toBeGreaterThan(1);
    expect(results).toEqual([
      expect.objectContaining({
        ...{ url: `https://youtu.be/hl-foghorn_?t=${Math.floor(segment?.start ?? 0)}`, generated: false },
        ...{ channel: expect.objectContaining({ name: 'Harbour Light Workshop' }) },
      }),
    ]);
  });

  it('takes all words in any order, without those that are excluded, and beginnings', async () => {
    expect(await videosOf('bread rye')).toEqual(['tw-bread___']);
    expect(await videosOf('rye -bread')).toEqual([]);
    expect(await videosOf('muss*')).toEqual(['tw-chowder_']);
    expect(await videosOf('"three pounds" -"four pounds"')).toEqual(['tw-chowder_']);
    expect(await videosOf('"pounds three"')).toEqual([]);
  });

  it('is limited by channel, label, language and date', async () => {
    const all = await videosOf('the');
    expect(all.length).toBeGreaterThan(3);
    expect((await videosOf('the', '&channel=@Tidewater')).every((id) => id.startsWith('tw-'))).toBe(true);
    expect((await videosOf('the', '&label=topic:boats')).every((id) => id.startsWith('hl-'))).toBe(true);
    expect(await videosOf('the', '&label=topic:cars')).toEqual([]);
    expect(await videosOf('the', '&language=de')).toEqual([]);
    expect(await videosOf('uns*', '&language=DE')).toEqual(['hl-keeper__']);
    const days = new Date(Date.now() - 5 * 86_400_000).toISOString();
    expect((await videosOf('the', `&publishedAfter=${days.slice(0, 10)}`)).sort()).toEqual(
      expect.not.arrayContaining(['hl-keeper__', 'tw-bread___']),
    );
  });

  it.each(['relevance', 'newest'])('has each passage once on its pages: %s', async (sort) => {
    const whole = await search(service, key, 'the', `&limit=100&sort=${sort}`);
    expect(whole).toMatchObject({ next: null, total: whole.results.length });
    const paged = [];
    for (let after: string | null = ''; after !== null;) {
      const cursor: string = after === '' ? '' : `&after=${after}`;
      const { results, next, total } = await search(service, key, 'the', `&limit=2&sort=${sort}${cursor}`);
      expect(total).toBe(whole.total);
      paged.push(...results);
      after = next;
    }
    expect(paged).toEqual(whole.results);
  });

  it('of another organization finds and counts nothing', async () => {
    const other = await service.organization();
    for (const q of ['the', '"rye wheat"', 'muss*'])
      expect(await search(service, other.key, q)).toEqual({ results: [], next: null, total: 0 });
  });

  it('needs the Pro plan', async () => {
    const { key: free } = await service.organization({ plan: 'free' });
    const response = await service.get('/library/search?q=the', free);
    expect(response).toMatchObject({ status: 403, body: { error: { feature: 'library' } } });
  });
});

describe('a hostile query', () => {
  it.each([
    ...["'", "''; DROP TABLE jobs; --", '\\', '%00', '%ff', '"', '&|!():*<->', "a'b", 'a:*D', '\\x00', '-'.repeat(200)],
    ...['(((((((', '"a" <-> "b"', '%F0%9F%99%82', '%ED%A0%80', '*'.repeat(200), 'x'.repeat(200), '"'.repeat(199) + 'a'],
  ])('is answered or refused: %j', async (q) => {
    const text = /%[0-9a-f]{2}/i.test(q) ? q : encodeURIComponent(q);
    for (const sort of ['relevance', 'newest']) {
      const { status } = await service.get(`/library/search?q=${text}&sort=${sort}`, key);
      expect([200, 400]).toContain(status);
    }
  });

  it('that names no place or filter of a library is refused', async () => {
    for (const query of [
      'after=x',
      'after=99999999999999999999',
      'sort=newest&after=5',
      'sort=x',
      'language=e',
      'publishedAfter=2026-13-01',
      'label=x',
      'limit=0',
      'extra=1',
    ])
      expect((await service.get(`/library/search?q=the&${query}`, key)).status).toBe(400);
    expect((await service.get('/library/search', key)).status).toBe(400);
    for (const query of ['after=x', 'after=1', 'label=x'])
      expect((await service.get(`/library/videos?${query}`, key)).status).toBe(400);
    expect((await service.request('DELETE', '/library', { Authorization: `Bearer ${key}` })).status).toBe(400);
  });
});

describe('a phrase', () => {
  /** Words of three scripts between which segments and passages end anywhere. */
  const SCRIPTS = { latin: ['ab', 'ba', 'é', 'b'], han: ['神', '经', '网'], hebrew: ['ש', 'ל', 'של', 'ו'] };

  it.each(Object.entries(SCRIPTS))(
    'is found where a plain scan of the whole text finds it: %s',
    async (script, words) => {
      const word = fc.constantFrom(...words);
      const texts = fc.array(fc.array(word, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 30 });
      const phrases = fc.array(fc.array(word, { minLength: script === 'han' ? 2 : 1, maxLength: 5 }), {
        minLength: 10,
        maxLength: 10,
      });
      await fc.assert(
        fc.asyncProperty(texts, phrases, async (lines, wanted) => {
          const segments = lines.map((line, index) => ({ text: line.join(' '), start: index * 7, duration: 7 }));
          const vectors = (await passagesOf(new Map([['en', segments]]))).map((passage) => passage.words);
          const conditions = wanted.map((phrase) => parseQuery(`"${phrase.join(' ')}"`).condition);
          const rows = await service.query(`
          SELECT EXISTS (SELECT FROM unnest(ARRAY[${vectors.map(quoted).join(', ')}]::tsvector[]) words
                   WHERE words @@ condition::tsquery) AS found
            FROM unnest(ARRAY[${conditions.map(quoted).join(', ')}]) WITH ORDINALITY AS query (condition, place) ORDER BY place`);
          const whole = plain(lines.flat(), script);
          expect(rows.map(({ found }) => found)).toEqual(wanted.map((phrase) => whole.includes(plain(phrase, script))));
        }),
        { numRuns: 60 },
      );
    },
  );

  const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
  const plain = (words: readonly string[], script: string): string =>
    normalizedText(script === 'han' ? words.join('') : ` ${words.join(' ')} `);
});
