import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Environment, EnvironmentError, environmentWarnings, readEnvironment, VARIABLES } from './environment.js';

const NAMES = Object.keys(VARIABLES.shape);

function faultsOf(variables: Record<string, string>): readonly string[] {
  try {
    readEnvironment(variables);
    return [];
  } catch (error) {
    if (error instanceof EnvironmentError) return error.faults;
    throw error;
  }
}

describe('the configuration', () => {
  it('of an empty environment has the defaults', () => {
    expect(readEnvironment({})).toEqual(new Environment());
  });

  it('treats an empty variable as unset', () => {
    expect(readEnvironment({ PORT: '', DATABASE_URL: '', UPSTREAM_PROXY_URL: '' })).toEqual(new Environment());
  });

  it('reads every kind of variable', () => {
    expect(
      readEnvironment({
        PORT: '0',
        DATABASE_URL: 'postgres://app:secret@db:5432/app',
        REDIS_URL: 'rediss://cache:6380/1',
        UPSTREAM_PROXY_URL: 'http://a:b@one:3128, https://two, http://u-{session}:p@four',
        UPSTREAM_PLAYER_PER_MINUTE: '0',
        YOUTUBE_CLIENTS: 'ANDROID,VISIONOS',
        CORS_ORIGINS: 'https://app.example.com,http://localhost:5173',
        PUBLISH_DATES: 'exact',
        WEBHOOK_SECRET_KEY: 'k7Qm2Zp9Xw4Rt8Lv1Nc6Bd3Fh5Js0Ga2, p3Vb8Yn1Kd6Mq9Tz4Wc7Lx2Rf5Hg0JsQ8',
        WEBHOOK_ALLOW_PRIVATE: 'true',
      }),
    ).toMatchObject({
      PORT: 0,
      DATABASE_URL: 'postgres://app:secret@db:5432/app',
      REDIS_URL: 'rediss://cache:6380/1',
      UPSTREAM_PROXY_URL: ['http://a:b@one:3128', 'https://two', 'http://u-{session}:p@four'],
      UPSTREAM_PLAYER_PER_MINUTE: 0,
      YOUTUBE_CLIENTS: ['ANDROID', 'VISIONOS'],
      CORS_ORIGINS: ['https://app.example.com', 'http://localhost:5173'],
      PUBLISH_DATES: 'exact',
      WEBHOOK_SECRET_KEY: ['k7Qm2Zp9Xw4Rt8Lv1Nc6Bd3Fh5Js0Ga2', 'p3Vb8Yn1Kd6Mq9Tz4Wc7Lx2Rf5Hg0JsQ8'],
      WEBHOOK_ALLOW_PRIVATE: true,
    });
  });

  it('requires NATS_URL for messages over NATS only', () => {
    expect(faultsOf({ MESSAGE_TRANSPORT: 'nats' })).toEqual(['NATS_URL must be set when MESSAGE_TRANSPORT is nats']);
    expect(faultsOf({ MESSAGE_TRANSPORT: 'nats', NATS_URL: 'nats://a:b@one:4222, tls://two' })).toEqual([]);
    expect(faultsOf({ MESSAGE_TRANSPORT: 'tcp' })).toEqual([]);
  });

  const OIDC = { OIDC_ISSUER: 'https://id.example.com/realms/acme', OIDC_AUDIENCE: 'channel-transcripts' };

  it('requires the issuer and the audience of tokens together', () => {
    const { OIDC_ISSUER, OIDC_AUDIENCE } = OIDC;
    const OIDC_ADMIN_CLAIM = 'https://example.com/roles:transcripts-admin';
    expect(faultsOf({ OIDC_ISSUER })).toEqual(['OIDC_AUDIENCE must be set when OIDC_ISSUER is']);
    expect(faultsOf({ OIDC_AUDIENCE })).toEqual(['OIDC_ISSUER must be set when OIDC_AUDIENCE is']);
    expect(faultsOf({ OIDC_ADMIN_CLAIM })).toEqual(['OIDC_ADMIN_CLAIM must not be set without OIDC_ISSUER']);
    expect(faultsOf({ OIDC_SCOPES: 'true' })).toEqual(['OIDC_SCOPES must not be true without OIDC_ISSUER']);
    expect(faultsOf({ OIDC_SCOPES: 'false' })).toEqual([]);
    expect(readEnvironment({ ...OIDC, OIDC_ADMIN_CLAIM })).toMatchObject({
      ...OIDC,
      OIDC_ORGANIZATION_CLAIM: 'org_id',
      OIDC_ADMIN_CLAIM: { claim: 'https://example.com/roles', value: 'transcripts-admin' },
    });
  });

  it.each(['http://localhost:9000', 'http://127.0.0.1/x', 'http://[::1]:1', 'https://tenant.example.com/'])(
    'accepts the issuer %s',
    (OIDC_ISSUER) => {
      expect(faultsOf({ ...OIDC, OIDC_ISSUER })).toEqual([]);
    },
  );

  it.each([
    'issuer.test',
    'http://id.example.com',
    'http://127.0.0.1.example.com',
    'https://a:b@id.example.com',
    'https://x/?a',
  ])('refuses the issuer %s in one line without it', (OIDC_ISSUER) => {
    const faults = faultsOf({ ...OIDC, OIDC_ISSUER });
    expect(faults).toEqual([expect.stringMatching(/^OIDC_ISSUER must be the https:\/\/ URL/)]);
    expect(faults[0]).not.toContain(OIDC_ISSUER);
  });

  it.each(['roles', ':admin', 'roles:', ' :x'])('refuses the admin claim %j', (OIDC_ADMIN_CLAIM) => {
    expect(faultsOf({ ...OIDC, OIDC_ADMIN_CLAIM })).toEqual([
      'OIDC_ADMIN_CLAIM must be a claim and its value such as roles:transcripts-admin',
    ]);
  });

  it('requires PO_TOKEN_URL for WEB as a client for captions', () => {
    const fault = expect.stringMatching(/^YOUTUBE_CLIENTS must not list WEB unless PO_TOKEN_URL is set/);
    expect(faultsOf({ YOUTUBE_CLIENTS: 'VISIONOS,WEB' })).toEqual([fault]);
    expect(faultsOf({ YOUTUBE_CLIENTS: 'VISIONOS,WEB', PO_TOKEN_URL: 'http://127.0.0.1:4416' })).toEqual([]);
  });

  it.each([
    ['PORT', '65536'],
    ['PORT', '3e3'],
    ['PORT', '0x10'],
    ['RATE_LIMIT_PER_MINUTE', '10001'],
    ['TRANSCRIPT_TTL_SECONDS', '1.5'],
    ['PLAN_PRO_MONTHLY', '99999999999999999999'],
    ['DATABASE_URL', 'mysql://db/app'],
    ['REDIS_URL', 'http://cache'],
    ['UPSTREAM_PROXY_URL', 'http://one,,https://two'],
    ['UPSTREAM_PROXY_URL', 'socks5://one'],
    ['UPSTREAM_PROXY_URL', 'http://user-{sticky}:pass@one'],
    ['UPSTREAM_PROXY_URL', 'http://user:100%@one'],
    ['YOUTUBE_CLIENTS', 'WEB'],
    ['YOUTUBE_CLIENTS', 'ANDROID,ANDROID'],
    ['PO_TOKEN_URL', 'provider:4416'],
    ['WEBHOOK_SECRET_KEY', 'a-token-that-has-38-characters-x-y-z-0-1,too-short'],
    ['WEBHOOK_ALLOW_PRIVATE', 'yes'],
    ['ADMIN_TOKEN', 'long enough for a token but with spaces'],
    ['ADMIN_TOKEN', 'lang-genug-für-ein-token-aber-mit-größe'],
    ['ADMIN_TOKEN', 'changeme'.repeat(4)],
    ['LOG_LEVEL', 'loud'],
    ['NATS_QUEUE', 'a b'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['TRUST_PROXY', 'on'],
    ['TRUST_PROXY', '11'],
    ['TRUST_PROXY', '0.0.0.0/0'],
    ['TRUST_PROXY', 'loopback, ::/0'],
    ['TRUST_PROXY', '0.0.0.0/1,128.0.0.0/1'],
    ['TRUST_PROXY', '64.0.0.0/2, 128.0.0.0/1, 0.0.0.0/2'],
    ['TRUST_PROXY', '::/1,8000::/1'],
    // Every IPv4 address in its IPv6 form.
    ['TRUST_PROXY', '::ffff:0:0/96'],
    ['TRUST_PROXY', '::/64'],
    // Every IPv6 address in public use.
    ['TRUST_PROXY', '2000::/4,3000::/4'],
    ['TRUST_PROXY', '1.2.3.4/99'],
    ['TRUST_PROXY', '10.0.0.0/8,'],
    ['CORS_ORIGINS', 'https://app.example.com/path'],
  ])('rejects %s=%j with one line that names the variable', (name, value) => {
    const faults = faultsOf({ [name]: value });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^${name} must .+$`));
  });

  it.each([
    'off',
    '2',
    '10',
    'loopback',
    'loopback, 10.0.0.0/8',
    '::1',
    'fd00::/8,192.168.1.1',
    '::ffff:10.0.0.0/104',
    '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7,fe80::/10,2600:1f00::/24',
  ])('accepts TRUST_PROXY=%s', (value) => {
    expect(readEnvironment({ TRUST_PROXY: value }).TRUST_PROXY).toBe(value);
  });

  it('reports every invalid variable at once', () => {
    expect(faultsOf({ PORT: 'x', REDIS_URL: 'x', LOG_LEVEL: 'x' }).map((fault) => fault.split(' ')[0])).toEqual([
      'PORT',
      'REDIS_URL',
      'LOG_LEVEL',
    ]);
  });

  it('is never shown in a fault, because a URL can contain a password and a token is one', () => {
    for (const name of NAMES) {
      for (const value of ['hunter2', 'gopher://app:hunter2@db', '{hunter2}', 'hunter2'.repeat(9)]) {
        const faults = faultsOf({ [name]: value });
        if (/URL|TOKEN|SECRET|ORIGINS/.test(name)) expect([name, faults.length]).toEqual([name, 1]);
        expect(faults.join(' ')).not.toContain('hunter2');
      }
    }
  });

  it.each(['ADMIN_TOKEN', 'METRICS_TOKEN'])('says how to generate %s when it is short or guessable', (name) => {
    for (const token of ['short', 'x'.repeat(64)])
      expect(faultsOf({ [name]: token })[0]).toContain('openssl rand -hex 32');
  });

  it('turns any text into a value or into faults of one line each', () => {
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), fc.string(), (name, value) => {
        for (const fault of faultsOf({ [name]: value })) expect(fault).not.toContain('\n');
      }),
    );
  });
});

describe('a configuration that is valid and probably not meant', () => {
  const warningsOf = (variables: Record<string, string>) =>
    environmentWarnings(readEnvironment(variables), { ...variables });

  it.each([
    ['RATE_LIMIT_PER_MIN', 'RATE_LIMIT_PER_MINUTE'],
    ['REQUEST_DEADLINE_SECOND', 'REQUEST_DEADLINE_SECONDS'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['YOUTUBE_CLIENT', 'YOUTUBE_CLIENTS'],
    ['admin_tokens', 'ADMIN_TOKEN'],
  ])('has %s, and the warning names %s', (name, meant) => {
    expect(warningsOf({ [name]: 'x' })).toEqual([`${name} is not a variable of this service. Did you mean ${meant}?`]);
  });

  it('is not suspected in the variables of other programs', () => {
    const names =
      'PATH HOME HOSTNAME HOSTTYPE LOGNAME MAIL PGHOST PGPORT DB_HOST DB_PORT DATABASE_USER DATABASE_HOST DATABASE_NAME REDIS_HOST ' +
      'REDIS_PORT REDIS_SERVICE_HOST NATS_HOST HTTP_PROXY NO_PROXY NODE_ENV NODE_OPTIONS LC_ALL SSH_TTY KUBERNETES_PORT KUBERNETES_SERVICE_HOST ' +
      'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT OTEL_SERVICE_NAME POSTGRES_USER POSTGRES_PASSWORD VALKEY_PASSWORD VALKEY_MEMORY BIND_ADDRESS ' +
      'SERVICE_MEMORY_LIMIT NGINX_IMAGE npm_config_user_agent npm_package_name TEST_DATABASE_URL YARN_VERSION';
    expect(warningsOf(Object.fromEntries(names.split(' ').map((name) => [name, 'x'])))).toEqual([]);
    expect(warningsOf(Object.fromEntries(NAMES.map((name) => [name, ''])))).toEqual([]);
  });

  it.each([
    [{ SHUTDOWN_DELAY_SECONDS: '60', SHUTDOWN_GRACE_SECONDS: '50' }, /^SHUTDOWN_DELAY_SECONDS \(60\) is above /],
    [{ YOUTUBE_CLIENTS: 'IOS' }, /^YOUTUBE_CLIENTS lists clients of one app /],
    [{ YOUTUBE_CLIENTS: 'VISIONOS,ANDROID_VR' }, /^YOUTUBE_CLIENTS lists clients of one app /],
    [{ YOUTUBE_CLIENTS: 'ANDROID,ANDROID_REEL' }, /^YOUTUBE_CLIENTS lists clients of one app /],
  ])('is warned of: %j', (variables, warning) => {
    expect(warningsOf(variables)).toEqual([expect.stringMatching(warning)]);
  });

  it.each([
    { SHUTDOWN_DELAY_SECONDS: '50' },
    { YOUTUBE_CLIENTS: 'IOS,ANDROID' },
    { YOUTUBE_CLIENTS: 'IOS', PO_TOKEN_URL: 'http://127.0.0.1:4416' },
  ])('is not %j', (variables) => {
    expect(warningsOf(variables as unknown as Record<string, string>)).toEqual([]);
  });
});
