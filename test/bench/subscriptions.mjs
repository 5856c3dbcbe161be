import { setTimeout as sleep } from 'node:timers/promises';

/** Of the services that are measured with subscriptions. */
export const ADMIN_TOKEN = 'admin-token-of-the-follow-bench-0123456789';
export const CHECK_MINUTES = 60;
/** Of each generated channel. */
const VIDEOS = 25;
const CONNECTIONS = 16;
const WAIT_MS_MAX = 600_000;

/** Makes an organization on the Pro plan, and a key for it. */
export async function makeOrganization(service) {
  const { id } = await request(service, ADMIN_TOKEN, '/admin/organizations', { name: 'Follow', plan: 'pro' });
  return (await request(service, ADMIN_TOKEN, `/admin/organizations/${id}/keys`, {})).key;
}

/** Creates the subscriptions from one number to another, of the organizations in turn, to a channel each. */
export async function subscribe(service, keys, from, to) {
  let next = from;
  const work = async () => {
    while (next < to) {
      const number = next++;
      const channel = `@${VIDEOS}-videos-no-${number + 1}`;
      const body = { channel, checkMinutes: CHECK_MINUTES };
      await request(service, keys[number % keys.length], '/subscriptions', body);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
}

/** Waits until each subscription was checked once. */
export async function untilChecked(service, keys) {
  const endMs = performance.now() + WAIT_MS_MAX;
  for (const key of keys) {
    while ([...(await checkTimes(service, [key])).values()].some((at) => at === null)) {
      if (performance.now() > endMs) throw new Error('The first checks are not done');
      await sleep(500);
    }
  }
}

/** When each subscription was checked last. */
export async function checkTimes(service, keys) {
  const times = new Map();
  for (const key of keys) {
    let after = '';
    do {
      const page = await request(service, key, `/subscriptions?limit=100${after}`);
      for (const { id, checkedAt, state } of page.subscriptions) {
        if (state !== 'active') throw new Error(`${id} is ${state}`);
        times.set(id, checkedAt);
      }
      after = page.next === null ? undefined : `&after=${page.next}`;
    } while (after !== undefined);
  }
  return times;
}

/** How many subscriptions were checked between two times. */
export function countChanges(before, after) {
  return [...after].filter(([id, at]) => before.get(id) !== at).length;
}

async function request({ port }, key, path, body) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}
