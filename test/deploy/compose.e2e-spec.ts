import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readEnvironment } from '../../src/config/environment.js';

const PROJECT = join(import.meta.dirname, '../..');
const source = readFileSync(join(PROJECT, 'docker-compose.yml'), 'utf8');
const names = ['proxy', 'service', 'postgres', 'valkey'] as const;

interface Part {
  image: string;
  user?: string;
  command?: string[];
  environment: Record<string, string>;
  ports?: string[];
  tmpfs?: string[];
  read_only: boolean;
  privileged?: boolean;
  cap_drop: string[];
  cap_add?: string[];
  security_opt: string[];
  mem_limit: string;
  pids_limit: number;
  logging: { driver: string; options: Record<string, string> };
  volumes: string[];
  networks: string[];
  deploy: { replicas: number };
  depends_on: unknown;
  healthcheck: { test: string[] };
  stop_grace_period: string;
}

const compose = parse(source, { merge: true }) as {
  services: Record<(typeof names)[number], Part>;
  networks: Record<string, unknown>;
};

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

/** Bytes of a size as Compose writes it. */
function bytesOf(size: string): number {
  const [, count = '', unit = ''] = /^(\d+)([mg])b?$/.exec(size) ?? [];
  return Number(count) * (unit === 'g' ? 2 ** 30 : 2 ** 20);
}

/** What `.env` contains when the example is filled in. */
const filledIn: Record<string, string> = { POSTGRES_PASSWORD: 'letters4nd1gits', VALKEY_PASSWORD: '0thers' };
for (const [, name = '', value = ''] of readFileSync(join(PROJECT, '.env.example'), 'utf8').matchAll(
  /^(\w+)=(.*)$/gm,
)) {
  filledIn[name] ??= value;
}

describe('docker compose up', () => {
  it('starts two replicas behind a proxy, with PostgreSQL and Valkey, and publishes only the proxy', () => {
    expect(Object.keys(compose.services)).toEqual(names);
    expect(compose.services.service.deploy.replicas).toBe(2);
    expect(names.filter((name) => compose.services[name].ports !== undefined)).toEqual(['proxy']);
    expect(compose.networks.back).toEqual({ internal: true });
    expect([compose.services.postgres.networks, compose.services.valkey.networks]).toEqual([['back'], ['back']]);
  });

  it('starts each service when its dependencies are healthy, and each has a health check', () => {
    const needs = (name: 'proxy' | 'service'): unknown => compose.services[name].depends_on;
    expect(needs('proxy')).toEqual({ service: { condition: 'service_healthy' } });
    const healthy = { condition: 'service_healthy' };
    expect(needs('service')).toEqual({ postgres: healthy, valkey: healthy });
    // The service's own check is the image's.
    for (const name of ['proxy', 'postgres', 'valkey'] as const)
      expect(compose.services[name].healthcheck.test[0]).toBe('CMD');
  });

  it('listens on the local machine only, unless .env names another address', () => {
    const published = (values: Record<string, string>): string[] | undefined =>
      compose.services.proxy.ports?.map((port) => interpolate(port, values));
    expect(published({})).toEqual(['127.0.0.1:3000:8080']);
    expect(published(filledIn)).toEqual(['127.0.0.1:3000:8080']);
    expect(published({ BIND_ADDRESS: '0.0.0.0', PORT: '80' })).toEqual(['0.0.0.0:80:8080']);
  });

  it.each(names)('%s has no privileges and cannot gain any', (name) => {
    const part = compose.services[name];
    expect(part).toMatchObject({ cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], read_only: true });
    expect([part.cap_add, part.privileged]).toEqual([undefined, undefined]);
    // The service's own user is the image's.
    if (name !== 'service') expect(part.user).toBe(name === 'proxy' ? 'nginx' : name);
  });

  it.each(names)('%s has limits on memory, processes and log size', (name) => {
    const { mem_limit, pids_limit, logging } = compose.services[name];
    const memory = bytesOf(interpolate(mem_limit, filledIn));
    expect(memory).toBeGreaterThanOrEqual(2 ** 28);
    expect(interpolate(mem_limit, {})).toBe(interpolate(mem_limit, filledIn));
    expect(pids_limit).toBeGreaterThan(10);
    expect(logging).toEqual({ driver: 'json-file', options: { 'max-size': '20m', 'max-file': '5' } });
  });

  it('explains what to do when the password is missing, and contains no password', () => {
    const { DATABASE_URL = '' } = compose.services.service.environment;
    expect(() => interpolate(DATABASE_URL, {})).toThrow('set POSTGRES_PASSWORD in .env, of letters and digits');
    const settings = names.flatMap((name) => Object.entries(compose.services[name].environment ?? {}));
    const secrets = settings.filter(([name]) => /PASSWORD|TOKEN|AUTH/.test(name));
    const valkeys = '${VALKEY_PASSWORD:-${POSTGRES_PASSWORD}}';
    expect(Object.fromEntries(secrets)).toEqual({
      POSTGRES_PASSWORD: expect.stringMatching(/^\$\{POSTGRES_PASSWORD:\?/),
      ...{ VALKEY_PASSWORD: valkeys, REDISCLI_AUTH: valkeys },
    });
    const example = readFileSync(join(PROJECT, '.env.example'), 'utf8');
    expect(example).toMatch(/^POSTGRES_PASSWORD=$/m);
    expect(example).toMatch(/^VALKEY_PASSWORD=$/m);
    expect(example).toMatch(/^ADMIN_TOKEN=$/m);
    expect(readFileSync(join(PROJECT, '.gitignore'), 'utf8').split('\n')).toContain('.env');
  });

  it('passes the service a valid environment, with the example .env filled in', () => {
    const own = Object.entries(compose.services.service.environment);
    const environment = readEnvironment({
      ...filledIn,
      ...Object.fromEntries(own.map(([name, value]) => [name, interpolate(value, filledIn)])),
    });
    expect(environment).toMatchObject({
      ...{ PORT: 3000, HOST: '0.0.0.0', REDIS_URL: 'redis://:0thers@valkey:6379', TRUST_PROXY: '1' },
      DATABASE_URL: 'postgres://app:letters4nd1gits@postgres:5432/channel_transcripts',
    });
    const { REDIS_URL = '' } = compose.services.service.environment;
    expect(interpolate(REDIS_URL, { POSTGRES_PASSWORD: 'one4b0th' })).toBe('redis://:one4b0th@valkey:6379');
    const graceSeconds = Number.parseInt(compose.services.service.stop_grace_period, 10);
    expect(graceSeconds).toBeGreaterThanOrEqual(environment.SHUTDOWN_GRACE_SECONDS + 10);
  });

  it('mounts the tested configuration into the proxy, with the port of the replicas', () => {
    const [mount = ''] = compose.services.proxy.volumes;
    const [file = '', place, mode] = mount.split(':');
    expect([place, mode]).toEqual(['/etc/nginx/nginx.conf', 'ro']);
    expect(existsSync(join(PROJECT, file))).toBe(true);
    const configuration = readFileSync(join(PROJECT, file), 'utf8');
    expect(configuration).toContain(`server service:${compose.services.service.environment.PORT} resolve`);
    expect(configuration).toContain(`listen ${compose.services.proxy.ports?.[0]?.split(':').at(-1)};`);
  });
});
