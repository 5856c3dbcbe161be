import type { Fleet } from '../../harness/fleet.js';
import type { Customer } from '../../harness/service.js';
import { at } from '../../harness/transcripts.js';
import type { Archive } from './archive.js';

/** Compares the library of an organization with the results of its jobs, and deletes a video. @returns the violations */
export async function wrongInLibrary(fleet: Fleet, customer: Customer, jobs: readonly Archive[]): Promise<string[]> {
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
  const find = (word: string, handle: string): Promise<string[]> =>
    read(`search?q=${word}&channel=${handle}&sort=newest`, 'results');
  const listed = new Set(await read('videos?', 'videos'));
  const own = jobs.filter((job) => job.customer === customer);
  const delivered = new Map(own.flatMap(({ kept, handle }) => [...kept].map(([id, word]) => [id, { word, handle }])));
  const seen = new Set<string>();
  for (const [id, { word, handle }] of delivered) {
    if (!listed.has(id)) wrong.push(`${id} of ${handle} is not listed`);
    // The search for a word of one video finds many others.
    if (seen.has(id)) continue;
    const found = await find(word, handle);
    for (const one of found) seen.add(one);
    if (!found.includes(id)) wrong.push(`${id} of ${handle} is not found`);
    wrong.push(...found.filter((other) => !listed.has(other)).map((other) => `${other} is found and not listed`));
  }
  const [[id, { word, handle }] = ['', { word: '', handle: '' }]] = delivered;
  const { status } = await fleet.call(customer, 'DELETE', `/library/videos/${id}`);
  if (status !== 204) wrong.push(`the deletion of "${id}" answers ${status}`);
  else if ((await find(word, handle)).includes(id)) wrong.push(`${id} is deleted and found`);
  return wrong;
}
