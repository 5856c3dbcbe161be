import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseQuery } from '../../src/library/search-query.js';
import { startService, type TestService } from '../harness/service.js';
import { createJob, waitForJob } from '../jobs/job-requests.js';
import { deleteFromLibrary, libraryVideos, search } from './library-requests.js';

let service: TestService;
/** The organization that searches. */
let id = '';
let key = '';

beforeAll(async () => {
  service = await startService();
  ({ id, key } = await service.organization());
  // Speech of 90 words in random order, each in every second passage, and a few other texts.
  for (const body of [
    { channel: '@bench-40x200' },
    { channel: '@tidewater' },
    { videos: ['hl-nets____', 'hl-pearl___'] },
  ])
    await waitForJob(service, key, await createJob(service, key, { languages: ['en', '*'], ...body, keep: true }));
  const [newest] = (await libraryVideos(service, key, '?channel=@bench-40x200&limit=1')).videos;
  await deleteFromLibrary(service, key, `/videos/${newest?.videoId}`);
});
afterAll(() => service.close());

/** The videos of all passages that match, newest first, by reading every passage. */
async function scan(q: string, condition = 'true'): Promise<unknown[]> {
  const rows = await service.query(`
    SELECT text.video_id FROM library_passages passage JOIN library_texts text ON text.id = passage.text_id
      WHERE (passage.words @@ $q$${parseQuery(q).condition}$q$) IS TRUE AND text.organization_id = '${id}' AND text.deleted_at IS NULL AND ${condition}
      ORDER BY text.published_at DESC, text.id DESC, passage.first_segment, passage.language`);
  return rows.map(({ video_id: videoId }) => videoId);
}

/** The videos of all pages, newest first. */
async function pages(q: string, query = ''): Promise<unknown[]> {
  const videos: unknown[] = [];
  for (let after: string | null = ''; after !== null;) {
    const cursor: string = after === '' ? '' : `&after=${after}`;
    const { results, next } = await search(service, key, q, `&sort=newest&limit=90${query}${cursor}`);
    videos.push(...results.map(({ videoId }) => videoId));
    after = next;
  }
  return videos;
}

const QUERIES = [
  ...[
    'wind',
    'the',
    'wind halyards planks thumb',
    'mussels',
    'wind mussels',
    '补渔网',
    'القوارب',
    'wind 补渔网',
    'pl*',
  ],
  ...['"halyards thumb"', '"the tide"', 'wind -tide', 'wind -the -tide -storm -planks', '-wind mussels', 'wind -larc*'],
];

describe('a search', () => {
  it.each(QUERIES)('finds what a scan of all passages finds, however common it is: %s', async (q) => {
    const videos = await scan(q);
    expect(await pages(q)).toEqual(videos);
    const ranked = await search(service, key, q, '&limit=100');
    expect(ranked.total).toBe(Math.min(1_000, videos.length));
    expect(videos).toEqual(expect.arrayContaining(ranked.results.map(({ videoId }) => videoId)));
  });

  it.each([
    ['the', '&channel=@tidewater', `text.channel_handle = '@tidewater'`],
    ['the', '&language=zh', 'false'],
    ['wind', '&language=EN', `passage.language = 'en'`],
    ['wind', '&label=topic:boats', 'false'],
    ['mussels', '&channel=@bench-40x200', 'false'],
  ])('finds of %j with %s the passages of the filter', async (q, query, condition) => {
    expect(await pages(q, query)).toEqual(await scan(q, condition));
  });

  it('for a rare phrase of common words reads the newest 256 MB only', async () => {
    ({ id, key } = await service.organization());
    await waitForJob(service, key, await createJob(service, key, { channel: '@bench-40x200', keep: true }));
    const phrases = ['"halyards thumb"', '"tide seams"', '"wind planks"', '"keep larch"'];
    await service.query(`UPDATE library_texts SET stored_bytes = 200 * 1048576`);
    const newest = `text.id IN (SELECT id FROM library_texts WHERE organization_id = '${id}' ORDER BY published_at DESC, id DESC LIMIT 2)`;
    const found: unknown[] = [];
    const scanned: unknown[] = [];
    for (const q of phrases) {
      found.push(...(await pages(q)));
      expect(await pages(q)).toEqual(await scan(q, newest));
      scanned.push(...(await scan(q)));
    }
    expect(scanned.length).toBeGreaterThan(found.length);
    expect(await pages('wind')).toEqual(await scan('wind'));
    expect(await pages('wind 网')).toEqual([]);
  });
});
