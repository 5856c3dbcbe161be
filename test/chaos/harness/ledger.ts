import type { Service } from './service.js';

/** The quota of an organization over all months, as the service recomputes it for an operator. */
export interface Ledger {
  exact: boolean;
  used: number;
  reserved: number;
}

/** Reads the usage of `/admin` or of the command. */
function ledgerFrom(usage: unknown): Ledger {
  const { reserved, verification } = usage as {
    reserved: number;
    verification: { exact: boolean; periods: { used: number }[] };
  };
  return { exact: verification.exact, used: verification.periods.reduce((sum, { used }) => sum + used, 0), reserved };
}

/** The figures of `usage --verify`, over HTTP: the commands take a second each to start. */
export async function ledgerOf(service: Service, organizationId: string): Promise<Ledger> {
  return ledgerFrom(await service.admin('GET', `/organizations/${organizationId}/usage?verify=true`));
}

/** The same by the command. */
export async function verifiedLedger(service: Service, organizationId: string): Promise<Ledger> {
  return ledgerFrom(await service.command('usage', organizationId, '--verify'));
}
