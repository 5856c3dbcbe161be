import type { Fleet } from '../../harness/fleet.js';
import type { Customer } from '../../harness/service.js';
import { at } from '../../harness/transcripts.js';
import type { Archive } from './archive.js';

/** Compares the library of an organization with the results of its jobs, and deletes a video. @returns one line per violation */
export async function wrongInLibrary(
  fleet: Fleet,
  customer: Customer,
  archives: readonly Archive[],
): Promise<string[]> {
  const wrong: string[] = [];
  const read = async (path: string, list: string): Promise<string[]> => {
    const ids: string[] = [];
    for (let after: unknown = ''; typeof after === 'string';) {
      const { status, body, text } = await fleet.call(customer, 'GET', `/library/${path}&limit=100${after}`);
      const items = at(body, list);
      if (status !== 200 || !Array.isArray(items)) throw new Error(`${path} answers ${status} ${text.slice(0, 200)}`);
      ids.push(...items.map((item) => String(at(item, 'videoId'))));
      const next = at(body, 'next');
      after = typeof next === 'string' ? `&after=${next}` : undefined;
    }
    return ids;
  };
  const find = (words: string, handle: string): Promise<string[]> =>
    read(`search?q=${encodeURIComponent(`"${words}"`)}&channel=${handle}`, 'results');
  const listed = new Set(await read('videos?', 'videos'));
  const delivered = new Map(
    archives.flatMap(({ kept, handle }) => [...kept].map(([id, words]) => [id, { words, handle }])),
  );
  for (const [id, { words, handle }] of delivered) {
    const found = await find(words, handle);
    if (!listed.has(id)) wrong.push(`${id} of ${handle} is not listed`);
    if (!found.includes(id)) wrong.push(`${id} of ${handle} is not found`);
    wrong.push(...found.filter((other) => !listed.has(other)).map((other) => `${other} is found and not listed`));
  }
  const [[id, { words, handle }] = ['', { words: 'none', handle: '' }]] = delivered;
  const { status } = await fleet.call(customer, 'DELETE', `/library/videos/${id}`);
  if (status !== 204) wrong.push(`the deletion of "${id}" answers ${status}`);
  else if ((await find(words, handle)).includes(id)) wrong.push(`${id} is deleted and found`);
  return wrong;
}
