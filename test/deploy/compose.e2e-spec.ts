import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readEnvironment } from '../../src/config/environment.js';

const PROJECT = join(import.meta.dirname, '../..');
const names = ['proxy', 'service', 'postgres', 'valkey'] as const;

/** What the tests read of a service. */
interface Part {
  environment?: Record<string, string>;
  ports?: string[];
  mem_limit: string;
  pids_limit: number;
  volumes?: string[];
  stop_grace_period: string;
}

const compose = parse(readFileSync(join(PROJECT, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: Record<(typeof names)[number], Part>;
  networks: Record<string, unknown>;
};

const { proxy, service, postgres, valkey } = compose.services;
const environmentOfService = service.environment ?? {};

/** Puts values in the place of `${NAME}`, `${NAME:-default}` and `${NAME:?message}`, as Compose does, the inner ones first. */
function interpolate(text: string, values: Record<string, string>): string {
  const replaced = text.replace(
    /(?<!\$)\$\{(\w+)(?::([-?])([^${}]*))?\}/g,
    (_, name: string, kind?: string, rest: string = '') => {
      if (values[name]) return values[name];
      if (kind === '?') throw new Error(`${name}: ${rest}`);
      return kind === '-' ? rest : '';
    },
  );
  return replaced === text ? text.replaceAll('$$', '$') : interpolate(replaced, values);
}

const example = readFileSync(join(PROJECT, '.env.example'), 'utf8');
/** What `.env` contains when the example is filled in. */
const filledIn: Record<string, string> = {
  ...Object.fromEntries([...example.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value])),
  POSTGRES_PASSWORD: 'letters4nd1gits',
  VALKEY_PASSWORD: '0thers',
};

describe('docker compose up', () => {
  it('starts two replicas behind a proxy, with PostgreSQL and Valkey, and publishes only the proxy', () => {
    expect(Object.keys(compose.services)).toEqual(names);
    expect(service).toMatchObject({ deploy: { replicas: 2 } });
    expect(names.filter((name) => compose.services[name].ports !== undefined)).toEqual(['proxy']);
    expect(compose.networks.back).toEqual({ internal: true });
    for (const part of [postgres, valkey]) expect(part).toMatchObject({ networks: ['back'] });
  });

  it('starts each service when its dependencies are healthy, and each has a health check', () => {
    const healthy = { condition: 'service_healthy' };
    expect(proxy).toMatchObject({ depends_on: { service: healthy } });
    expect(service).toMatchObject({ depends_on: { postgres: healthy, valkey: healthy } });
    // The service's own check is the image's.
    for (const part of [proxy, postgres, valkey]) {
      expect(part).toMatchObject({ healthcheck: { test: expect.arrayContaining(['CMD']) } });
    }
  });

  it('listens on the local machine only, unless .env names another address', () => {
    const published = (values: Record<string, string>): string[] | undefined =>
      proxy.ports?.map((port) => interpolate(port, values));
    expect(published({})).toEqual(['127.0.0.1:3000:8080']);
    expect(published(filledIn)).toEqual(['127.0.0.1:3000:8080']);
    expect(published({ BIND_ADDRESS: '0.0.0.0', PORT: '80' })).toEqual(['0.0.0.0:80:8080']);
  });

  it.each(names)('%s has no privileges and cannot gain any', (name) => {
    // The service's own user is the image's.
    const user = { proxy: 'nginx', service: undefined, postgres: 'postgres', valkey: 'valkey' }[name];
    expect(compose.services[name]).toMatchObject({
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      read_only: true,
      ...(user && { user }),
    });
    for (const more of ['cap_add', 'privileged']) expect(compose.services[name]).not.toHaveProperty(more);
  });

  it.each(names)('%s has limits on memory, processes and log size', (name) => {
    const { mem_limit, pids_limit } = compose.services[name];
    expect(interpolate(mem_limit, {})).toMatch(/^\d+[mg]$/);
    expect(interpolate(mem_limit, {})).toBe(interpolate(mem_limit, filledIn));
    expect(pids_limit).toBeGreaterThan(10);
    const logging = { driver: 'json-file', options: { 'max-size': '20m', 'max-file': '5' } };
    expect(compose.services[name]).toMatchObject({ logging });
  });

  it('gives the service a role that is not the superuser of PostgreSQL', () => {
    const { POSTGRES_USER, SERVICE_ROLE = '' } = postgres.environment ?? {};
    expect([POSTGRES_USER, interpolate(SERVICE_ROLE, filledIn)]).toEqual(['postgres', 'app']);
    expect(postgres.volumes).toContain('./deploy/postgres-role.sh:/docker-entrypoint-initdb.d/role.sh:ro');
  });

  it('explains what to do when the password is missing, and contains no password', () => {
    const { DATABASE_URL = '' } = environmentOfService;
    expect(() => interpolate(DATABASE_URL, {})).toThrow('set POSTGRES_PASSWORD in .env, of letters and digits');
    const settings = names.flatMap((name) => Object.entries(compose.services[name].environment ?? {}));
    const secrets = settings.filter(([name]) => /PASSWORD|TOKEN|AUTH/.test(name));
    const valkeys = '${VALKEY_PASSWORD:-${POSTGRES_PASSWORD}}';
    expect(Object.fromEntries(secrets)).toEqual({
      POSTGRES_PASSWORD: expect.stringMatching(/^\$\{POSTGRES_PASSWORD:\?/),
      VALKEY_PASSWORD: valkeys,
      REDISCLI_AUTH: valkeys,
    });
    for (const name of ['POSTGRES_PASSWORD', 'VALKEY_PASSWORD', 'ADMIN_TOKEN']) {
      expect(example.split('\n')).toContain(`${name}=`);
    }
    expect(readFileSync(join(PROJECT, '.gitignore'), 'utf8').split('\n')).toContain('.env');
  });

  it('passes the service a valid environment, with the example .env filled in', () => {
    const own: Record<string, string> = {};
    for (const [name, value] of Object.entries(environmentOfService)) own[name] = interpolate(value, filledIn);
    const environment = readEnvironment({ ...filledIn, ...own });
    expect(environment).toMatchObject({
      PORT: 3000,
      HOST: '0.0.0.0',
      REDIS_URL: 'redis://:0thers@valkey:6379',
      TRUST_PROXY: '1',
      DATABASE_URL: 'postgres://app:letters4nd1gits@postgres:5432/channel_transcripts',
    });
    const { REDIS_URL = '' } = environmentOfService;
    expect(interpolate(REDIS_URL, { POSTGRES_PASSWORD: 'one4b0th' })).toBe('redis://:one4b0th@valkey:6379');
    expect(Number.parseInt(service.stop_grace_period, 10)).toBeGreaterThanOrEqual(
      environment.SHUTDOWN_GRACE_SECONDS + 10,
    );
  });

  it('mounts the tested configuration into the proxy, with the port of the replicas', () => {
    expect(proxy.volumes).toEqual(['./deploy/nginx.conf:/etc/nginx/nginx.conf:ro']);
    const configuration = readFileSync(join(PROJECT, 'deploy/nginx.conf'), 'utf8');
    expect(configuration).toContain(`server service:${environmentOfService.PORT} resolve`);
    expect(configuration).toContain(`listen ${proxy.ports?.[0]?.split(':').at(-1)};`);
  });
});
