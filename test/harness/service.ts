import type { AddressInfo } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Environment } from '../../src/config/environment.js';
import type { Plan } from '../../src/domain/plan.js';
import { createApp } from '../../src/bootstrap.js';
import { createRedactor } from '../../src/observability/logging/logger.js';
import { createLogger } from '../../src/observability/logging/logger.js';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { startFakeYoutube, type FakeYoutube, type FakeYoutubeOptions } from '../fake-youtube/fake-youtube.js';
import { interruptibleLink, type InterruptibleLink } from '../database/interruptible-link.js';
import { createTestDatabase } from '../database/test-database.js';
import { send, type HttpResponse } from './http-request.js';
import { randomPart, refuseSecrets, rowsAsText } from './plaintext-keys.js';

export interface ServiceResponse extends HttpResponse {
  body: any;
}

export interface TestOrganization {
  id: string;
  keyId: string;
  key: string;
}

/** A running service on a free port, with its own database and fake YouTube. */
export interface TestService {
  app: NestExpressApplication;
  url: string;
  fakeYoutube: FakeYoutube;
  /** The connection to the database. Throws unless the service was started with `interruptible: true`. */
  readonly link: InterruptibleLink;
  /** The log lines so far. */
  logs: string[];
  organization(options?: { plan?: Plan; monthlyLimit?: number }): Promise<TestOrganization>;
  /** Sends a request; the path is sent unchanged. Rejects when the response is cut short. */
  request(
    method: string,
    path: string,
    headers?: Record<string, string | string[]>,
    body?: string | Buffer,
  ): Promise<ServiceResponse>;
  /** GET with an API key. */
  get(path: string, key: string, headers?: Record<string, string>): Promise<ServiceResponse>;
  /** URL of the database itself, not through the link. */
  databaseUrl: string;
  query(statement: string): Promise<Record<string, unknown>[]>;
  /** Also throws when a log line, a row or an error body contains a key or the admin token. */
  close(): Promise<void>;
}

export interface TestServiceOptions {
  /** Connects to the database through a link that can be interrupted, which takes a tenth of the time of most tests. */
  interruptible?: boolean;
  environment?: Partial<Environment>;
  fakeYoutube?: FakeYoutubeOptions;
  stalledReaderMs?: number;
  /** Prepares the empty database and returns the URL for the service. */
  databaseUrl?: (url: string) => Promise<string>;
}

/** Starts the service in this process. */
export async function startService(options: TestServiceOptions = {}): Promise<TestService> {
  const database = await createTestDatabase(options.databaseUrl ? 'empty' : 'migrated');
  const direct = options.databaseUrl ? await options.databaseUrl(database.url) : database.url;
  const link = options.interruptible ? await interruptibleLink(direct) : undefined;
  const fakeYoutube = await startFakeYoutube(options.fakeYoutube);
  const environment = Object.assign(
    new Environment(),
    { DATABASE_URL: link?.url ?? direct, YOUTUBE_BASE_URL: fakeYoutube.url, LOG_LEVEL: 'debug' },
    // Tests wait for a condition by repeated calls, more of them on a busy machine.
    { RATE_LIMIT_PER_MINUTE: 0 },
    options.environment,
  );
  const logs: string[] = [];
  const redact = createRedactor(environment.ADMIN_TOKEN, environment.METRICS_TOKEN);
  const logger = createLogger('debug', { write: (line) => void logs.push(line) }, redact);
  const app = await createApp(environment, logger, options.stalledReaderMs);
  await app.listen(0, '127.0.0.1');
  const url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
  const keys: string[] = [];
  const errorBodies: string[] = [];
  const request: TestService['request'] = async (method, path, headers, body) => {
    const response = await send(url, method, path, { headers, body });
    if (!response.whole) throw new Error(`The response to ${path} was cut short.`);
    if (response.status >= 400) errorBodies.push(response.text);
    return response;
  };
  return {
    app,
    url,
    fakeYoutube,
    get link() {
      if (link === undefined) throw new Error('Start the service with `interruptible: true`.');
      return link;
    },
    logs,
    organization: async (wanted) => {
      const organization = await createOrganization(app, wanted);
      keys.push(organization.key);
      return organization;
    },
    request,
    get: (path, key, headers = {}) => request('GET', path, { ...headers, Authorization: `Bearer ${key}` }),
    databaseUrl: database.url,
    query: (statement) => database.query(statement),
    close: async () => {
      app.getHttpServer().closeAllConnections();
      await app.close();
      await fakeYoutube.close();
      await link?.close();
      const rows = await rowsAsText(database);
      await database.drop();
      const secrets = [...keys.map(randomPart), ...(environment.ADMIN_TOKEN ? [environment.ADMIN_TOKEN] : [])];
      refuseSecrets({ logs: logs.join(''), rows, 'bodies of errors': errorBodies.join('\n') }, secrets);
    },
  };
}

async function createOrganization(
  app: NestExpressApplication,
  { plan = 'pro', monthlyLimit }: { plan?: Plan; monthlyLimit?: number } = {},
): Promise<TestOrganization> {
  const { id } = await app
    .get(OrganizationsService)
    .create({ name: `Test ${plan}`, plan, ...(monthlyLimit !== undefined && { monthlyLimit }) });
  const issued = await app.get(ApiKeysService).issue({ organizationId: id, name: 'test' });
  return { id, keyId: issued.id, key: issued.key };
}
