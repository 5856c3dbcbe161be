import pLimit from 'p-limit';
import { equal, type Check } from '../chaos-run.js';
import { ledgerOf, type Ledger } from './ledger.js';
import type { Service } from './service.js';
import { at } from './transcripts.js';
import { until } from './until.js';

/** Longer than a lease after a short deadline. */
const SETTLED_MS = 30_000;
const PAGE = 100;

/**
 * Checks the state of an idle service, whatever happened to it before: no call in flight, no reservation, and an exact usage of every
 * organization. It waits for that state, so call it after the last client has disconnected and every fault has ended.
 *
 * @param name of the service, where a part has several
 */
export async function settledState(service: Service, name = 'the service'): Promise<Check[]> {
  let calls = Number.NaN;
  await until(
    'No call runs',
    async () => {
      calls = (await service.metrics()).get('ct_calls_in_flight') ?? Number.NaN;
      return calls === 0;
    },
    SETTLED_MS,
    200,
  ).catch(() => undefined);
  let ledgers = new Map<string, Ledger>();
  const reserved = (): number => [...ledgers.values()].reduce((sum, one) => sum + one.reserved, 0);
  await until(
    'Nothing is reserved',
    async () => (ledgers = await ledgersOf(service)) && reserved() === 0,
    SETTLED_MS,
    1_000,
  ).catch(() => undefined);
  const inexact = [...ledgers].flatMap(([id, { exact }]) => (exact ? [] : [id]));
  return [
    equal(`at rest, ${name}: ct_calls_in_flight`, calls, 0),
    equal(`at rest, ${name}: transcripts reserved, over all organizations`, reserved(), 0),
    {
      name: `at rest, ${name}: \`usage --verify\` is exact for every organization`,
      observed: `${ledgers.size - inexact.length} of ${ledgers.size}${inexact.length > 0 ? `, not for ${inexact.slice(0, 3).join(', ')}` : ''}`,
      passed: inexact.length === 0 && ledgers.size > 0,
    },
  ];
}

async function ledgersOf(service: Service): Promise<Map<string, Ledger>> {
  const ledgers = new Map<string, Ledger>();
  let after: unknown = null;
  do {
    const query = `limit=${PAGE}${typeof after === 'string' ? `&after=${encodeURIComponent(after)}` : ''}`;
    const page = await service.admin('GET', `/organizations?${query}`);
    const organizations = at(page, 'organizations');
    const ids = Array.isArray(organizations) ? organizations.map((one) => String(at(one, 'id'))) : [];
    await pLimit(4).map(ids, async (id) => ledgers.set(id, await ledgerOf(service, id)));
    after = at(page, 'next');
  } while (typeof after === 'string');
  return ledgers;
}
