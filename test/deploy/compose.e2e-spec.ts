import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readEnvironment } from '../../src/config/environment.js';

const PROJECT = join(import.meta.dirname, '../..');
const source = readFileSync(join(PROJECT, 'docker-compose.yml'), 'utf8');
const names = ['proxy', 'service', 'postgres', 'valkey'] as const;

interface Part {
  environment: Record<string, string>;
  ports?: string[];
  volumes: string[];
  networks: string[];
  deploy: { replicas: number };
  depends_on: unknown;
  healthcheck: { test: string[] };
  stop_grace_period: string;
}

const compose = parse(source) as { services: Record<(typeof names)[number], Part>; networks: Record<string, unknown> };

/** Puts values in the place of `${NAME}`, `${NAME:-default}` and `${NAME:?message}`, as Compose does. */
function interpolate(text: string, values: Record<string, string>): string {
  return text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind?: string, rest: string = '') => {
    if (values[name]) return values[name];
    if (kind === '?') throw new Error(`${name}: ${rest}`);
    return kind === '-' ? rest : '';
  });
}

describe('docker compose up', () => {
  it('starts two replicas behind a proxy, with PostgreSQL and Valkey, and only the proxy can be reached', () => {
    expect(Object.keys(compose.services)).toEqual(names);
    expect(compose.services.service.deploy.replicas).toBe(2);
    expect(names.filter((name) => compose.services[name].ports !== undefined)).toEqual(['proxy']);
    expect(compose.networks.back).toEqual({ internal: true });
    expect([compose.services.postgres.networks, compose.services.valkey.networks]).toEqual([['back'], ['back']]);
  });

  it('starts each part when what it needs is healthy, and each part can tell', () => {
    const needs = (name: 'proxy' | 'service'): unknown => compose.services[name].depends_on;
    expect(needs('proxy')).toEqual({ service: { condition: 'service_healthy' } });
    const healthy = { condition: 'service_healthy' };
    expect(needs('service')).toEqual({ postgres: healthy, valkey: healthy });
    // The service's own check is the image's.
    for (const name of ['proxy', 'postgres', 'valkey'] as const)
      expect(compose.services[name].healthcheck.test[0]).toBe('CMD');
  });

  it('says what to do when the password is missing, and holds none itself', () => {
    const { DATABASE_URL = '' } = compose.services.service.environment;
    expect(() => interpolate(DATABASE_URL, {})).toThrow('set POSTGRES_PASSWORD in .env, of letters and digits');
    const settings = [compose.services.service.environment, compose.services.postgres.environment];
    const secrets = settings.flatMap((all) => Object.entries(all)).filter(([name]) => /PASSWORD|TOKEN/.test(name));
    expect(secrets.map(([, value]) => value)).toEqual([expect.stringMatching(/^\$\{POSTGRES_PASSWORD:\?/)]);
    const example = readFileSync(join(PROJECT, '.env.example'), 'utf8');
    expect(example).toMatch(/^POSTGRES_PASSWORD=$/m);
    expect(example).toMatch(/^ADMIN_TOKEN=$/m);
    expect(readFileSync(join(PROJECT, '.gitignore'), 'utf8').split('\n')).toContain('.env');
  });

  it('gives the service an environment that it accepts, with the example filled in', () => {
    const given: Record<string, string> = { POSTGRES_PASSWORD: 'letters4nd1gits' };
    for (const [, name = '', value = ''] of readFileSync(join(PROJECT, '.env.example'), 'utf8').matchAll(
      /^(\w+)=(.*)$/gm,
    )) {
      given[name] ??= value;
    }
    const own = Object.entries(compose.services.service.environment);
    const environment = readEnvironment({
      ...given,
      ...Object.fromEntries(own.map(([name, value]) => [name, interpolate(value, given)])),
    });
    expect(environment).toMatchObject({
      ...{ PORT: 3000, HOST: '0.0.0.0', REDIS_URL: 'redis://valkey:6379', TRUST_PROXY: '1' },
      DATABASE_URL: 'postgres://app:letters4nd1gits@postgres:5432/channel_transcripts',
    });
    const graceSeconds = Number.parseInt(compose.services.service.stop_grace_period, 10);
    expect(graceSeconds).toBeGreaterThanOrEqual(environment.SHUTDOWN_GRACE_SECONDS + 10);
  });

  it('gives the proxy the configuration that the tests run, which asks the replicas at their port', () => {
    const [mount = ''] = compose.services.proxy.volumes;
    const [file = '', place, mode] = mount.split(':');
    expect([place, mode]).toEqual(['/etc/nginx/nginx.conf', 'ro']);
    expect(existsSync(join(PROJECT, file))).toBe(true);
    const configuration = readFileSync(join(PROJECT, file), 'utf8');
    expect(configuration).toContain(`server service:${compose.services.service.environment.PORT} resolve`);
    expect(configuration).toContain(`listen ${compose.services.proxy.ports?.[0]?.split(':').at(-1)};`);
  });
});
