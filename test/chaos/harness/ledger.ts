import { ADMIN_TOKEN, send, type Service } from './service.js';
import { at } from './transcripts.js';

/** An organization's quota as the service reports it to an operator. */
export interface Ledger {
  exact: boolean;
  used: number;
  reserved: number;
}

/** The figures of `usage --verify`, over HTTP: the commands take a second each to start. */
export async function ledgerOf(service: Service, organizationId: string): Promise<Ledger> {
  const path = `/admin/organizations/${organizationId}/usage?verify=true`;
  const { status, body } = await send(service.url, 'GET', path, { Authorization: `Bearer ${ADMIN_TOKEN}` }, 20_000);
  if (status !== 200) throw new Error(`The usage is answered ${status}.`);
  return {
    exact: at(body, 'verification', 'exact') === true,
    used: Number(at(body, 'used')),
    reserved: Number(at(body, 'reserved')),
  };
}

/** The usage of a customer over all months, as `usage --verify` recomputes it. */
export interface Book {
  used: number;
  reserved: number;
  exact: boolean;
}

/** Parses a customer's usage from `/admin` or from the output of the command. */
export function bookOf(usage: unknown): Book {
  const { reserved, verification } = usage as {
    reserved: number;
    verification: { exact: boolean; periods: { used: number }[] };
  };
  return { used: verification.periods.reduce((sum, { used }) => sum + used, 0), reserved, exact: verification.exact };
}

/** Sets the offset of the quota's clock from the real time. */
export function quotaClock(offsetSeconds: number): string {
  return `CREATE OR REPLACE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT clock_timestamp() + make_interval(secs => ${offsetSeconds})'`;
}
