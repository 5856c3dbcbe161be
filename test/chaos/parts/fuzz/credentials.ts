import { generateKey } from '../../../../src/organizations/api-key.js';
import { ADMIN_TOKEN, type Service } from '../../harness/service.js';
import type { Database } from '../../harness/database.js';

export const METRICS_TOKEN = 'chaos-tests-metrics-token-9876543210';

/** The protected parts of the API; everything else is public. */
export type Area = 'channels' | 'usage' | 'admin' | 'metrics';

/** The credentials of a request. */
export interface Credential {
  name: string;
  headers: readonly (readonly [name: string, value: string])[];
  /** The parts of the API that it gives access to. */
  opens: readonly Area[];
}

export interface Credentials {
  all: readonly Credential[];
  pro: Credential;
  admin: Credential;
  metrics: Credential;
  /** Secrets that must never appear in a response. */
  secrets: readonly string[];
}

/** Creates organizations and keys of every kind. */
export async function makeCredentials(service: Service, database: Database, url: string): Promise<Credentials> {
  const pro = await service.customer('pro');
  const free = await service.customer('free');
  const exhausted = await service.customer('pro', 0);
  const issue = async (): Promise<{ id: string; key: string }> =>
    (await service.admin('POST', `/organizations/${pro.id}/keys`, {})) as { id: string; key: string };
  const [revoked, expired, old] = [await issue(), await issue(), await issue()];
  await service.admin('DELETE', `/keys/${revoked.id}`);
  await database.query(url, `UPDATE api_keys SET expires_at = clock_now() - interval '1 second' WHERE id = $1`, [
    expired.id,
  ]);
  const { key: renewed } = (await service.admin('POST', `/keys/${old.id}/rotate`, {})) as { key: string };
  const unknown = generateKey();
  const mistyped = `${pro.key.slice(0, -1)}${pro.key.endsWith('a') ? 'b' : 'a'}`;

  const bearer = (name: string, token: string, opens: readonly Area[] = [], scheme = 'Bearer'): Credential => ({
    name,
    headers: [['Authorization', `${scheme} ${token}`]],
    opens,
  });
  const other = (name: string, ...headers: [string, string][]): Credential => ({ name, headers, opens: [] });
  const valid = bearer('pro', pro.key, ['channels', 'usage']);
  const admin = bearer('admin token', ADMIN_TOKEN, ['admin']);
  const metrics = bearer('metrics token', METRICS_TOKEN, ['metrics']);
  const all: Credential[] = [
    valid,
    admin,
    bearer('free', free.key, ['usage']),
    bearer('exhausted', exhausted.key, ['channels', 'usage']),
    bearer('rotated, in grace', old.key, ['channels', 'usage']),
    bearer('renewed', renewed, ['channels', 'usage']),
    bearer('bearer in lower case', pro.key, ['channels', 'usage'], 'bearer'),
    bearer('several spaces', `  ${pro.key}  `, ['channels', 'usage']),
    metrics,
    bearer('revoked', revoked.key),
    bearer('expired', expired.key),
    bearer('unknown', unknown),
    bearer('mistyped', mistyped),
    bearer('malformed', 'ctk_short'),
    bearer('cut', pro.key.slice(0, 30)),
    bearer('overlong', pro.key.repeat(20)),
    bearer('two in one', `${pro.key} ${free.key}`),
    bearer('odd bytes', `ctk_\xff\xfe${pro.key.slice(6)}`),
    bearer('Basic', Buffer.from(`${pro.key}:`).toString('base64'), [], 'Basic'),
    bearer('Token', pro.key, [], 'Token'),
    other('none'),
    other('empty', ['Authorization', '']),
    other('without a scheme', ['Authorization', pro.key]),
    other('scheme alone', ['Authorization', 'Bearer']),
    other('as a cookie', ['Cookie', `key=${pro.key}`]),
    other('as X-API-Key', ['X-API-Key', pro.key]),
    // Servers differ in which of several headers applies, so several give no access.
    other('several headers', ['Authorization', `Bearer ${pro.key}`], ['Authorization', `Bearer ${free.key}`]),
    other('one header twice', ['Authorization', `Bearer ${pro.key}`], ['authorization', `Bearer ${pro.key}`]),
    other('several, the first wrong', ['Authorization', `Bearer ${unknown}`], ['Authorization', `Bearer ${pro.key}`]),
  ];
  const keys = [pro, free, exhausted, revoked, expired, old].map(({ key }) => key);
  return {
    all,
    pro: valid,
    admin,
    metrics,
    secrets: [...keys, renewed, unknown, ADMIN_TOKEN, METRICS_TOKEN],
  };
}
