import { z } from 'zod';
import { meantName } from '../domain/unknown-parameter.js';
import {
  clientOverrides,
  claimValue,
  distinct,
  flag,
  issuer,
  listOf,
  oneOf,
  origin,
  proxyUrl,
  secretToken,
  trustedProxies,
  url,
  wholeNumber,
} from './variables.js';

/** The InnerTube clients. WEB reads channels and playlists, and captions with a PO token. */
export const YOUTUBE_CLIENTS = ['ANDROID', 'IOS', 'VISIONOS', 'ANDROID_REEL', 'ANDROID_VR', 'WEB'] as const;
export type YoutubeClient = (typeof YOUTUBE_CLIENTS)[number];

/**
 * The app of each client: what two clients of one app report is one fact. Headsets report videos made for kids as unplayable or
 * unavailable (VISIONOS recorded, ANDROID_VR in a maintained client's source).
 */
export const APPS: Readonly<Record<YoutubeClient, 'headset' | 'android' | 'ios' | 'web'>> = {
  VISIONOS: 'headset',
  ANDROID_VR: 'headset',
  ANDROID: 'android',
  ANDROID_REEL: 'android',
  IOS: 'ios',
  WEB: 'web',
};

/** Most severe first. */
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const HTTP_URL = /^https?$/;

/** The variables. docs/configuration.md has their descriptions and defaults; `npm run configuration` generates them. */
export const VARIABLES = z.object({
  PORT: wholeNumber(0, 65_535).default(3_000).describe('0 selects any free port'),
  HOST: z.string().default('0.0.0.0').describe('the address to listen on'),
  TRUST_PROXY: trustedProxies
    .default('off')
    .describe('whose `X-Forwarded-*` headers are trusted: `off`, the number of proxies, or their addresses and ranges'),
  CORS_ORIGINS: listOf(origin)
    .optional()
    .describe('origins that may call from a browser, separated by commas, or `*`; never for `/admin` or `/metrics`'),
  ADMIN_TOKEN: secretToken
    .optional()
    .describe(
      'Bearer token of `/admin`; at least 32 characters (`openssl rand -hex 32`). Unset: `/admin` is 404 without `OIDC_ADMIN_CLAIM`',
    ),
  OIDC_ISSUER: issuer
    .optional()
    .describe(
      'the issuer of an OpenID provider, exactly as its tokens have it: its [access tokens](sign-in.md) are accepted beside API keys. ' +
        '`https://…`, or `http://…` on this machine. Unset: API keys only',
    ),
  OIDC_AUDIENCE: z
    .string()
    .regex(/^\S+$/, 'must be a text without spaces')
    .optional()
    .describe(
      'required with `OIDC_ISSUER`: the audience (`aud`) that a token must have; for assistants the URL of `/mcp`',
    ),
  OIDC_ORGANIZATION_CLAIM: z
    .string()
    .regex(/^\S+$/, 'must be the name of a claim, without spaces')
    .default('org_id')
    .describe('the claim whose value is the `externalId` of an organization'),
  OIDC_SCOPES: flag
    .default(false)
    .describe(
      '`true`: a token may read only if its claim `scope` has `transcripts:read`, and change something only if it has `transcripts:write`',
    ),
  OIDC_ADMIN_CLAIM: claimValue
    .optional()
    .describe(
      'a claim and its value, such as `roles:transcripts-admin`: tokens that have it may use `/admin`, beside `ADMIN_TOKEN`',
    ),

  DATABASE_URL: url(/^postgres(?:ql)?$/, 'postgres://user:password@host:5432/name')
    .optional()
    .describe('`postgres://user:password@host:5432/name`; required for production. Unset: embedded PostgreSQL'),
  DATA_DIR: z
    .string()
    .default('./data')
    .describe('directory of the embedded PostgreSQL, which is for development; unused with `DATABASE_URL`'),
  MIGRATION_WAIT_SECONDS: wholeNumber(1, 86_400)
    .default(120)
    .describe('how long a start waits for another process that migrates, before it ends with one line that names it'),
  REDIS_URL: url(/^rediss?$/, 'redis://host:6379')
    .optional()
    .describe(
      '`redis://` or `rediss://`: a cache and rate limits shared by all processes (Redis or Valkey). Unset: in memory',
    ),
  CACHE_MAX_MEGABYTES: wholeNumber(1).default(256).describe('size of the in-memory cache, also with `REDIS_URL`'),

  TRANSCRIPT_TTL_SECONDS: wholeNumber(1)
    .default(604_800)
    .describe('how long a transcript is cached; a day at most for a video younger than three days or of unknown age'),
  UNAVAILABLE_TTL_SECONDS: wholeNumber(1)
    .default(3_600)
    .describe(
      'how long a missing transcript is cached in the first day of a video or at unknown age; 24 times that in its first week, 168 times after',
    ),
  UPLOADS_TTL_SECONDS: wholeNumber(1).default(120).describe("how long a channel's list of uploads is cached"),
  CHANNEL_TTL_SECONDS: wholeNumber(1)
    .default(86_400)
    .describe("how long a channel's ID, name and handle, and the kinds and dates of its uploads, are cached"),

  RATE_LIMIT_PER_MINUTE: wholeNumber(0, 10_000)
    .default(60)
    .describe(
      'calls per minute and key, and ten times as many per organization, beyond which 429; across all processes with `REDIS_URL`; 0 disables it',
    ),
  CALLS_PER_KEY: wholeNumber(0, 10_000)
    .default(10)
    .describe(
      'calls for transcripts, uploads and job results in flight per key in a process, beyond which 429; 0 disables it',
    ),
  CALLS_PER_ORGANIZATION: wholeNumber(0, 100_000)
    .default(40)
    .describe(
      'the same calls in flight per organization in a process, of all its keys, beyond which 429; 0 disables it',
    ),
  CALLS_PER_PROCESS: wholeNumber(0, 100_000)
    .default(200)
    .describe('the same calls in flight per process, of all keys, beyond which 503; 0 disables it'),
  RESPONSE_BUFFER_MAX_MEGABYTES: wholeNumber(1, 1_048_576)
    .default(256)
    .describe(
      'what all calls hold for their readers; one call may use a sixteenth for what it fetches, one organization a quarter. Beyond ' +
        'it entries fail and new calls are 503',
    ),
  REQUEST_DEADLINE_SECONDS: wholeNumber(1, 3_600)
    .default(45)
    .describe('how long a call may take; videos not received by then are `upstream_timeout`'),
  SHUTDOWN_GRACE_SECONDS: wholeNumber(0, 3_600)
    .default(50)
    .describe('how long running calls may take to complete after SIGTERM'),
  SHUTDOWN_DELAY_SECONDS: wholeNumber(0, 3_600)
    .default(2)
    .describe(
      'how long requests are still served after SIGTERM, with `/health/ready` at 503; at least 2 with `deploy/nginx.conf`',
    ),
  PLAN_FREE_MONTHLY: wholeNumber(0, 2_147_483_647).default(50).describe('transcripts a month on the Free plan'),
  PLAN_PRO_MONTHLY: wholeNumber(0, 2_147_483_647).default(5_000).describe('transcripts a month on the Pro plan'),
  USAGE_RETENTION_MONTHS: wholeNumber(1, 1_200)
    .default(24)
    .describe('whole months that `usage prune` retains beside the current one'),

  JOB_CONCURRENCY: wholeNumber(0, 100)
    .default(4)
    .describe(
      'slices of jobs ([up to 25 videos](jobs.md)) that this process runs at a time; 0: it runs none, and removes no results',
    ),
  JOBS_PER_ORGANIZATION: wholeNumber(1, 10_000)
    .default(20)
    .describe('unfinished jobs of an organization, beyond which 429'),
  JOB_VIDEOS_PER_ORGANIZATION: wholeNumber(1, 2_147_483_647)
    .default(200_000)
    .describe(
      'videos in the jobs of an organization beyond which a new one is 429, also in those that are canceled, deleted or expired until they are removed; a channel or a playlist counts what was listed of it',
    ),
  JOB_RESULTS_TTL_HOURS: wholeNumber(1, 87_600)
    .default(72)
    .describe('hours for which the results of a finished job are stored'),
  SUBSCRIPTIONS_PER_ORGANIZATION: wholeNumber(1, 10_000)
    .default(100)
    .describe('subscriptions of an organization, beyond which 429'),
  SUBSCRIPTION_RESULTS_TTL_HOURS: wholeNumber(1, 87_600)
    .default(168)
    .describe('hours for which a result of a subscription is stored; longer when its text is kept'),
  JOB_RESULTS_MAX_MEGABYTES: wholeNumber(1, 100_000_000)
    .default(10_000)
    .describe(
      'stored results of an organization, beyond which it cannot create or resume a job: 429; without those of subscriptions that keep them',
    ),
  LIBRARY_MAX_MEGABYTES: wholeNumber(1, 100_000_000)
    .default(2_048)
    .describe('megabytes that an organization can keep in its library, with the index of the words'),
  JOB_SWEEP_SECONDS: wholeNumber(1, 3_600)
    .default(5)
    .describe('how often this process looks for jobs that are due or go on, and removes results that are expired'),

  UPSTREAM_CONCURRENCY: wholeNumber(1, 64)
    .default(16)
    .describe(
      'concurrent outgoing requests through each egress (this address, or a proxy); at most 64 in the process, of which ' +
        'archive jobs send at most three quarters',
    ),
  UPSTREAM_TIMEOUT_SECONDS: wholeNumber(1, 3_600)
    .default(10)
    .describe('for one outgoing request, to the last byte of its response'),
  UPSTREAM_RETRIES: wholeNumber(0, 10).default(2).describe('retries for one video or one list, shared by its requests'),
  UPSTREAM_PROXY_URL: listOf(proxyUrl)
    .optional()
    .describe(
      'an HTTP(S) proxy, or several separated by commas, for all requests to YouTube, not for ' +
        'the PO token provider. `{session}` in one, usually in its user name, makes it a rotating gateway: each attempt ' +
        'at a video gets a fresh value, and so a fresh address. Percent-encode special characters of the password',
    ),
  UPSTREAM_PLAYER_PER_MINUTE: wholeNumber(0, 1_000_000)
    .optional()
    .describe(
      'the most player requests a minute of each egress; a gateway counts as one. Unset: the ' +
        '[pace](youtube.md#pace) is learned from refusals. 0: requests are sent as fast as they come, and refusals only ' +
        'pause the egress',
    ),
  UPSTREAM_TIMEDTEXT_PER_MINUTE: wholeNumber(0, 1_000_000).optional().describe('the same for caption requests'),
  YOUTUBE_BASE_URL: url(HTTP_URL, 'http://127.0.0.1:8090')
    .optional()
    .describe('receives every request to YouTube instead: an egress gateway, or the fake YouTube'),
  YOUTUBE_CLIENTS: distinct(YOUTUBE_CLIENTS)
    .default(['ANDROID', 'IOS', 'VISIONOS', 'ANDROID_REEL', 'ANDROID_VR'])
    .describe(
      'the InnerTube clients to try for captions, in order; at least two apps, because `video_unavailable` and ' +
        '`transcript_unavailable` are certain only when two agree (VISIONOS and ANDROID_VR are one, and so are ANDROID and ANDROID_REEL)',
    ),
  YOUTUBE_CLIENT_OVERRIDES: clientOverrides(YOUTUBE_CLIENTS)
    .optional()
    .describe(
      'newer [versions of InnerTube clients](youtube.md#client-versions), as JSON: ' +
        '`{ "VISIONOS": { "clientVersion": "1.04", … } }`',
    ),
  PO_TOKEN_URL: url(HTTP_URL, 'http://127.0.0.1:4416')
    .optional()
    .describe(
      "a provider of [PO tokens](youtube.md#client-fallback), bgutil's HTTP server, such as `http://127.0.0.1:4416`: " +
        'WEB, which needs tokens, is then the last client unless `YOUTUBE_CLIENTS` lists it',
    ),
  PUBLISH_DATES: oneOf(['feed', 'exact'])
    .default('feed')
    .describe(
      '`feed` dates the newest 15 uploads with one request; `exact` sends one for each uncached video without a date',
    ),

  WEBHOOK_SECRET_KEY: listOf(secretToken)
    .optional()
    .describe(
      'encrypts the secrets of webhooks in the database; 32 or more characters (`openssl rand -hex 32`), the same in every ' +
        'process. Several separated by commas: the first one encrypts, all of them decrypt ' +
        '([secrets](webhooks.md#secrets)). Unset: no webhook can be created',
    ),
  WEBHOOK_ALLOW_PRIVATE: flag
    .default(false)
    .describe(
      '`true` lets webhooks reach every address, also private ones and by `http://`: every customer may then reach every host',
    ),

  LOG_LEVEL: oneOf(LOG_LEVELS)
    .default('info')
    .describe('`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`'),
  METRICS_TOKEN: secretToken
    .optional()
    .describe('Bearer token of `/metrics`; at least 32 characters. Unset: everyone who reaches the port may read it'),
  OTEL_EXPORTER_OTLP_ENDPOINT: url(HTTP_URL, 'http://127.0.0.1:4318')
    .optional()
    .describe('an OpenTelemetry collector for OTLP over HTTP, which receives [traces](monitoring.md#traces)'),

  MESSAGE_TRANSPORT: oneOf(['tcp', 'nats'])
    .optional()
    .describe('`tcp` or `nats`: also serves calls as messages. Unset: HTTP only'),
  MESSAGE_HOST: z.string().default('127.0.0.1').describe('for `tcp`: the address to listen on'),
  MESSAGE_PORT: wholeNumber(0, 65_535).default(3_001).describe('for `tcp`: 0 selects any free port'),
  NATS_URL: listOf(url(/^(?:nats|tls)$/, 'nats://user:password@host:4222'))
    .optional()
    .describe(
      'required for `nats`: `nats://user:password@host:4222`, `nats://token@host` or `tls://…`, several separated by commas',
    ),
  NATS_QUEUE: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be up to 64 letters, digits, - and _')
    .default('channel-transcripts')
    .describe('for `nats`: the queue group, whose instances share the messages'),
});

const schema = VARIABLES.refine(({ MESSAGE_TRANSPORT, NATS_URL }) => MESSAGE_TRANSPORT !== 'nats' || NATS_URL, {
  path: ['NATS_URL'],
  error: 'must be set when MESSAGE_TRANSPORT is nats',
})
  .refine(({ YOUTUBE_CLIENTS: clients, PO_TOKEN_URL }) => !clients.includes('WEB') || PO_TOKEN_URL, {
    path: ['YOUTUBE_CLIENTS'],
    error: 'must not list WEB unless PO_TOKEN_URL is set: WEB returns captions only with PO tokens',
  })
  .refine(({ OIDC_ISSUER, OIDC_AUDIENCE }) => OIDC_ISSUER === undefined || OIDC_AUDIENCE !== undefined, {
    path: ['OIDC_AUDIENCE'],
    error: 'must be set when OIDC_ISSUER is',
  })
  .refine(({ OIDC_ISSUER, OIDC_AUDIENCE }) => OIDC_ISSUER !== undefined || OIDC_AUDIENCE === undefined, {
    path: ['OIDC_ISSUER'],
    error: 'must be set when OIDC_AUDIENCE is',
  })
  .refine(({ OIDC_ISSUER, OIDC_ADMIN_CLAIM }) => OIDC_ISSUER !== undefined || OIDC_ADMIN_CLAIM === undefined, {
    path: ['OIDC_ADMIN_CLAIM'],
    error: 'must not be set without OIDC_ISSUER',
  })
  .refine(({ OIDC_ISSUER, OIDC_SCOPES }) => OIDC_ISSUER !== undefined || !OIDC_SCOPES, {
    path: ['OIDC_SCOPES'],
    error: 'must not be true without OIDC_ISSUER',
  });

const UPSTREAM_SLOTS_MAX = 64;

const Defaults = class {
  constructor() {
    Object.assign(this, VARIABLES.parse({}));
  }
} as new () => z.output<typeof VARIABLES>;

/** The configuration. Every property is the environment variable of the same name; a new instance has the defaults. */
export class Environment extends Defaults {
  /** The outgoing requests of the process that run at a time: those of each egress, and at most 64. */
  get upstreamSlots(): number {
    return Math.min(UPSTREAM_SLOTS_MAX, this.UPSTREAM_CONCURRENCY * (this.UPSTREAM_PROXY_URL?.length ?? 1));
  }
}

/** One or more variables are invalid. */
export class EnvironmentError extends Error {
  /** @param faults one line per fault, without the value when it can contain a password */
  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'EnvironmentError';
  }
}

/**
 * Reads and validates the configuration. An empty variable counts as unset.
 *
 * @throws EnvironmentError naming every invalid variable
 */
export function readEnvironment(environment: Readonly<Record<string, string | undefined>> = process.env): Environment {
  const set = Object.fromEntries(Object.entries(environment).filter(([, text]) => text !== ''));
  const { data, error } = schema.safeParse(set);
  if (error) throw new EnvironmentError([...new Set(error.issues.map(describeFault))]);
  return Object.assign(new Environment(), data);
}

/** Names of one word, such as HOST and PORT, are parts of too many others. */
const NAMES = Object.keys(VARIABLES.shape).filter((name) => name.includes('_'));
/** Few, because other programs have variables such as DATABASE_USER. */
const TYPOS_MAX = 2;

/** Describes what is valid and probably not meant, one line each. @param variables as for `readEnvironment` */
export function environmentWarnings(
  { SHUTDOWN_DELAY_SECONDS: delay, SHUTDOWN_GRACE_SECONDS: grace, YOUTUBE_CLIENTS: clients, PO_TOKEN_URL }: Environment,
  variables: Readonly<Record<string, string | undefined>> = process.env,
): string[] {
  const warnings: string[] = [];
  for (const name of Object.keys(variables)) {
    if (!name.includes('_') || /^(?:OTEL|npm)_/.test(name) || name in VARIABLES.shape) continue;
    const meant = meantName(name, NAMES, TYPOS_MAX);
    if (meant !== undefined) warnings.push(`${name} is not a variable of this service. Did you mean ${meant}?`);
  }
  if (delay > grace)
    warnings.push(
      `SHUTDOWN_DELAY_SECONDS (${delay}) is above SHUTDOWN_GRACE_SECONDS (${grace}), which includes it: running calls are cut off after ${grace} s.`,
    );
  const apps = new Set(clients.map((client) => APPS[client]));
  if (PO_TOKEN_URL !== undefined) apps.add('web');
  if (apps.size < 2)
    warnings.push(
      'YOUTUBE_CLIENTS lists clients of one app (VISIONOS and ANDROID_VR are one, and so are ANDROID and ANDROID_REEL): ' +
        'video_unavailable and transcript_unavailable are certain only when two apps agree. List a client of another app.',
    );
  return warnings;
}

/** The place is the variable, and the field in one that is JSON, such as `YOUTUBE_CLIENT_OVERRIDES.IOS.osName`. */
function describeFault({ path, message }: z.core.$ZodIssue): string {
  const place = path.filter((part) => typeof part === 'string').join('.');
  return `${place} ${message}`;
}
