import type { FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import type { Redis } from '../../harness/redis.js';
import type { Customer, Service } from '../../harness/service.js';
import { brokenIdentities, readTranscripts } from '../../harness/transcripts.js';

const KEPT = 5;
const MORE = 1;

export interface LossEnd {
  /** Since the call could continue. */
  ms: number;
  fetched: number;
  wrong: string[];
}

/**
 * Entries that Redis loses before their response sends them: one process fetches them, another finds them in the cache, and
 * is held at a newer video until they are lost. They are sent all the same, and nothing more is charged.
 *
 * @param cues names a channel that is not cached
 * @param lose removes the entries of these videos
 */
export async function loseInMidCall(
  redis: Redis,
  fakeYoutube: FakeYoutube,
  [one, other]: readonly [Service, Service],
  { key }: Customer,
  cues: number,
  lose: (videoIds: readonly string[]) => Promise<void>,
): Promise<LossEnd> {
  const path = `/channels/@bench-${KEPT + MORE}x${cues}/transcripts`;
  const first = readTranscripts(await one.get(path, key));
  const [newest = '', ...older] = first?.entries.map(({ videoId }) => videoId) ?? [];
  // The newest is not cached, so the call waits for it before it reaches the others.
  if ((await remove(redis, (name) => name.includes(`:${newest}:`))) === 0) throw new Error('The newest was not kept.');
  const hold = fakeYoutube.hold({ kind: 'timedtext' });
  const running = other.get(path, key);
  await hold.arrived;
  await lose(older);
  const goesOnAtMs = performance.now();
  hold.release();
  const reported = readTranscripts(await running);
  const wrong = reported ? brokenIdentities(reported) : ['no whole answer'];
  if (reported && reported.summary.succeeded !== KEPT + MORE)
    wrong.push(`${reported.summary.succeeded} of ${KEPT + MORE} succeeded`);
  if (reported && reported.summary.fetched !== MORE) wrong.push(`${reported.summary.fetched} were fetched`);
  return {
    ms: performance.now() - goesOnAtMs,
    fetched: (first?.summary.fetched ?? 0) + (reported?.summary.fetched ?? 0),
    wrong,
  };
}

/** Deletes the entries of videos; returns how many. */
export async function evict(redis: Redis, videoIds: readonly string[]): Promise<number> {
  return remove(redis, (name) => videoIds.some((id) => name.includes(id)));
}

/** Deletes keys; returns how many. */
async function remove(redis: Redis, isMeant: (name: string) => boolean): Promise<number> {
  const names = await redis.command('KEYS', 'ct*:transcript:*');
  const meant = Array.isArray(names) ? names.map(String).filter(isMeant) : [];
  if (meant.length > 0) await redis.command('DEL', ...meant);
  return meant.length;
}
