import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { withLocalService, withOperations, type CreateService } from '../../src/admin/cli/local-service.js';
import { createApp } from '../../src/bootstrap.js';
import { QuotaDatabase } from '../quota/quota-database.js';

const ADMIN_TOKEN = 'an-admin-token-of-a-service-of-others';

let database: QuotaDatabase;
const before = { ...process.env };
beforeAll(async () => {
  database = await QuotaDatabase.open();
  Object.assign(process.env, { DATABASE_URL: database.url, ADMIN_TOKEN, LOG_LEVEL: 'silent' });
});
afterEach(() => void (app = undefined));
afterAll(async () => {
  for (const name of ['DATABASE_URL', 'ADMIN_TOKEN', 'LOG_LEVEL']) delete process.env[name];
  Object.assign(process.env, before);
  await database.close();
});

let app: INestApplication | undefined;
const create: CreateService = async (environment, logger) =>
  (app = await createApp(environment, logger, undefined, 'command'));

describe('the service of a command', () => {
  it('serves its own key alone, on this machine alone, until its work ends', async () => {
    const { organizationId } = await database.newCustomer();
    const { key } = await database.keys.issue({ organizationId });
    let url = '';
    const work = withLocalService(create, async ({ client }) => {
      url = (await app?.getUrl()) ?? '';
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      const statusOf = async (path: string, token?: string): Promise<number> =>
        (await fetch(url + path, { headers: token ? { Authorization: `Bearer ${token}` } : {} })).status;
      expect(await client.usage()).toMatchObject({ organization: 'org_commands' });
      expect(await statusOf('/usage', key)).toBe(401);
      expect(await statusOf('/usage')).toBe(401);
      expect(await statusOf('/admin/organizations', ADMIN_TOKEN)).toBe(401);
      expect(await statusOf('/metrics')).toBe(401);
      throw new Error('the end of the work');
    });
    await expect(work).rejects.toThrow('the end of the work');
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  it('ends with its work, also while somebody else holds connections to its port', async () => {
    const unfinished = [
      'GET /health HTTP/1.1\r\nHost: x\r\n',
      'POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{',
    ];
    let received = '';
    const closed = await withLocalService(create, async ({ client }) => {
      const port = Number(new URL((await app?.getUrl()) ?? '').port);
      const sockets = unfinished.map((text) => {
        const socket = connect(port, '127.0.0.1').on('error', () => undefined);
        socket.write(text);
        return socket;
      });
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));
      await client.usage();
      for (const socket of sockets) socket.on('data', (bytes) => (received += bytes.toString()));
      return sockets.map((socket) => once(socket, 'close'));
    });
    await Promise.all(closed);
    // A request whose time is over gets a 408.
    expect(received).not.toContain('HTTP/1.1 408');
  });

  it('calls with no fetch of the process, which a proxy of the environment can serve', async () => {
    const global = globalThis.fetch;
    globalThis.fetch = () => Promise.reject(new Error('The global fetch was called.'));
    try {
      expect(await withLocalService(create, ({ client }) => client.usage())).toMatchObject({
        organization: 'org_commands',
      });
    } finally {
      globalThis.fetch = global;
    }
  });

  it('does not listen for the operations of an operator', async () => {
    await withOperations(create, async ({ organizations }) => {
      expect(app?.getHttpServer()).toMatchObject({ listening: false });
      expect((await organizations.listOrganizations({ limit: 100 })).organizations).not.toEqual([]);
    });
  });

  it('gives back the organization of the commands as it was, with the plan and limit that an operator has set', async () => {
    await database.dataSource.query(
      `UPDATE organizations SET plan = 'free', monthly_limit = 7 WHERE id = 'org_commands'`,
    );
    const usage = await withLocalService(create, ({ client }) => client.usage());
    expect(usage).toMatchObject({ plan: 'free', limit: 7 });
  });
});
