import { type ClientFields, clientOverrides } from './client-overrides.js';
import {
  anyText,
  distinct,
  flag,
  InvalidFieldsError,
  InvalidValueError,
  listOf,
  matching,
  oneOf,
  origin,
  proxyUrl,
  secretToken,
  trustedProxies,
  url,
  wholeNumber,
  type Parser,
} from './variables.js';

/** The InnerTube clients. WEB reads channels and playlists, and captions with a PO token. */
export const YOUTUBE_CLIENTS = ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR', 'WEB'] as const;
export type YoutubeClient = (typeof YOUTUBE_CLIENTS)[number];

/** Most severe first. */
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const MESSAGE_TRANSPORTS = ['tcp', 'nats'] as const;
const PUBLISH_DATES = ['feed', 'exact'] as const;

const parsers = new Map<string, Parser<unknown>>();

/** Reads a property of `Environment` from the environment variable of the same name. */
function Variable<T>(parse: Parser<T>) {
  return <Name extends string>(_target: Record<Name, T | undefined>, name: Name): void => {
    parsers.set(name, parse);
  };
}

/**
 * The configuration. Every property is an environment variable of the same name; its initial value is the default. An
 * empty variable counts as unset.
 */
export class Environment {
  @Variable(wholeNumber(0, 65_535))
  PORT: number = 3000;

  @Variable(anyText)
  HOST: string = '0.0.0.0';

  /** Unset: an embedded PostgreSQL with its data in `DATA_DIR`. */
  @Variable(url('postgres:', 'postgresql:'))
  DATABASE_URL: string | undefined = undefined;

  @Variable(anyText)
  DATA_DIR: string = './data';

  /** Unset: the cache is in memory. */
  @Variable(url('redis:', 'rediss:'))
  REDIS_URL: string | undefined = undefined;

  @Variable(wholeNumber(1))
  TRANSCRIPT_TTL_SECONDS: number = 86_400;

  @Variable(wholeNumber(1))
  UNAVAILABLE_TTL_SECONDS: number = 3_600;

  @Variable(wholeNumber(1))
  UPLOADS_TTL_SECONDS: number = 120;

  @Variable(wholeNumber(1))
  CHANNEL_TTL_SECONDS: number = 86_400;

  @Variable(wholeNumber(1))
  CACHE_MAX_MEGABYTES: number = 256;

  /** Transcripts buffered for slow readers, over all calls of the process. */
  @Variable(wholeNumber(1, 1_048_576))
  RESPONSE_BUFFER_MAX_MEGABYTES: number = 256;

  @Variable(wholeNumber(1, 3_600))
  REQUEST_DEADLINE_SECONDS: number = 45;

  @Variable(wholeNumber(0, 3_600))
  SHUTDOWN_GRACE_SECONDS: number = 50;

  /** How long the service accepts requests after readiness fails; part of the grace period. */
  @Variable(wholeNumber(0, 3_600))
  SHUTDOWN_DELAY_SECONDS: number = 2;

  /** Concurrent calls of one key for transcripts, uploads and job results; 0 turns the limit off. */
  @Variable(wholeNumber(0, 10_000))
  CALLS_PER_KEY: number = 10;

  /** The same calls of this process, of all keys; 0 turns the limit off. */
  @Variable(wholeNumber(0, 100_000))
  CALLS_PER_PROCESS: number = 200;

  /** 0 turns the limit off. */
  @Variable(wholeNumber(0, 10_000))
  RATE_LIMIT_PER_MINUTE: number = 60;

  @Variable(wholeNumber(1, 1_024))
  UPSTREAM_CONCURRENCY: number = 16;

  @Variable(wholeNumber(1, 3_600))
  UPSTREAM_TIMEOUT_SECONDS: number = 10;

  @Variable(wholeNumber(0, 10))
  UPSTREAM_RETRIES: number = 2;

  /** Proxies for outgoing requests; one with `{session}` is a rotating gateway. */
  @Variable(listOf(proxyUrl))
  UPSTREAM_PROXY_URL: string[] | undefined = undefined;

  /** The most player requests of each egress; unset, the pace is learned without a ceiling; 0 turns pacing off. */
  @Variable(wholeNumber(0, 1_000_000))
  UPSTREAM_PLAYER_PER_MINUTE: number | undefined = undefined;

  /** The most caption requests of each egress, as above. */
  @Variable(wholeNumber(0, 1_000_000))
  UPSTREAM_TIMEDTEXT_PER_MINUTE: number | undefined = undefined;

  /** Receives every outgoing request in place of the platform: an egress gateway, or the fake YouTube. */
  @Variable(url('http:', 'https:'))
  YOUTUBE_BASE_URL: string | undefined = undefined;

  /** In the order in which they are tried; WEB needs `PO_TOKEN_URL`. */
  @Variable(distinct(YOUTUBE_CLIENTS))
  YOUTUBE_CLIENTS: YoutubeClient[] = ['VISIONOS', 'ANDROID', 'IOS', 'ANDROID_REEL', 'ANDROID_VR'];

  /** Replaces the versions of InnerTube clients, which age, without a release. */
  @Variable(clientOverrides(YOUTUBE_CLIENTS))
  YOUTUBE_CLIENT_OVERRIDES: ReadonlyMap<YoutubeClient, ClientFields> | undefined = undefined;

  /** A provider of PO tokens with the interface of bgutil's HTTP server. Unset: WEB is not tried for captions. */
  @Variable(url('http:', 'https:'))
  PO_TOKEN_URL: string | undefined = undefined;

  @Variable(oneOf(PUBLISH_DATES))
  PUBLISH_DATES: (typeof PUBLISH_DATES)[number] = 'feed';

  @Variable(wholeNumber(0, 2_147_483_647))
  PLAN_FREE_MONTHLY: number = 50;

  @Variable(wholeNumber(0, 2_147_483_647))
  PLAN_PRO_MONTHLY: number = 5_000;

  /** Complete months, besides the current one, whose settled calls are stored. */
  @Variable(wholeNumber(1, 1_200))
  USAGE_RETENTION_MONTHS: number = 24;

  /** Slices of archive jobs that this process runs at a time; 0: this process runs none. */
  @Variable(wholeNumber(0, 100))
  JOB_CONCURRENCY: number = 4;

  /** Unfinished archive jobs of one organization. */
  @Variable(wholeNumber(1, 10_000))
  JOBS_PER_ORGANIZATION: number = 20;

  /** How long the results of a finished archive job are stored. */
  @Variable(wholeNumber(1, 87_600))
  JOB_RESULTS_TTL_HOURS: number = 72;

  /** Stored results of archive jobs of one organization, beyond which it cannot create or resume a job. */
  @Variable(wholeNumber(1, 100_000_000))
  JOB_RESULTS_MAX_MEGABYTES: number = 10_000;

  /** How often this process looks for archive jobs that are due. */
  @Variable(wholeNumber(1, 3_600))
  JOB_SWEEP_SECONDS: number = 5;

  /** Keys for webhook secrets: the first encrypts, all decrypt. Unset: no webhook can be created. */
  @Variable(listOf(secretToken))
  WEBHOOK_SECRET_KEY: string[] | undefined = undefined;

  /** Lets webhooks reach every address, also by `http:`; for networks of one's own. */
  @Variable(flag)
  WEBHOOK_ALLOW_PRIVATE: boolean = false;

  /** Unset: `/admin` is disabled. */
  @Variable(secretToken)
  ADMIN_TOKEN: string | undefined = undefined;

  /** Unset: `/metrics` needs no token. */
  @Variable(secretToken)
  METRICS_TOKEN: string | undefined = undefined;

  @Variable(oneOf(LOG_LEVELS))
  LOG_LEVEL: (typeof LOG_LEVELS)[number] = 'info';

  /** The proxies whose `X-Forwarded-*` headers are trusted: `off`, a number of proxies, or addresses and ranges. */
  @Variable(trustedProxies)
  TRUST_PROXY: string = 'off';

  /** Accepts calls as messages too. Unset: HTTP only. */
  @Variable(oneOf(MESSAGE_TRANSPORTS))
  MESSAGE_TRANSPORT: (typeof MESSAGE_TRANSPORTS)[number] | undefined = undefined;

  @Variable(anyText)
  MESSAGE_HOST: string = '127.0.0.1';

  @Variable(wholeNumber(0, 65_535))
  MESSAGE_PORT: number = 3001;

  /** NATS servers; the first may contain a user and password, or a token. */
  @Variable(listOf(url('nats:', 'tls:')))
  NATS_URL: string[] | undefined = undefined;

  /** The queue group; NATS delivers each message to one of its members. */
  @Variable(matching(/^[A-Za-z0-9_-]{1,64}$/, 'up to 64 letters, digits, - and _'))
  NATS_QUEUE: string = 'channel-transcripts';

  /** The collector of traces. Unset: tracing is disabled. */
  @Variable(url('http:', 'https:'))
  OTEL_EXPORTER_OTLP_ENDPOINT: string | undefined = undefined;

  /** Origins that may call from a browser. Unset: none. */
  @Variable(listOf(origin))
  CORS_ORIGINS: string[] | undefined = undefined;
}

/** One or more variables are invalid. */
export class EnvironmentError extends Error {
  /** @param faults one line per invalid variable, without the value when it can contain a password */
  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'EnvironmentError';
  }
}

/**
 * Reads and validates the configuration.
 *
 * @throws EnvironmentError naming every invalid variable
 */
export function readEnvironment(variables: Readonly<Record<string, string | undefined>> = process.env): Environment {
  const environment = new Environment();
  const faults: string[] = [];
  for (const [name, parse] of parsers) {
    const text = variables[name];
    if (text === undefined || text === '') continue;
    try {
      Object.assign(environment, { [name]: parse(text) });
    } catch (error) {
      if (error instanceof InvalidFieldsError) {
        faults.push(...error.faults.map((fault) => `${name} ${fault}`));
        continue;
      }
      if (!(error instanceof InvalidValueError)) throw error;
      faults.push(`${name} ${error.message}${shown(name, text)}`);
    }
  }
  if (environment.MESSAGE_TRANSPORT === 'nats' && !variables['NATS_URL']) {
    faults.push('NATS_URL must be set when MESSAGE_TRANSPORT is nats');
  }
  if (environment.YOUTUBE_CLIENTS.includes('WEB') && !variables['PO_TOKEN_URL']) {
    faults.push(
      'YOUTUBE_CLIENTS must not list WEB unless PO_TOKEN_URL is set: WEB returns captions only with PO tokens',
    );
  }
  if (faults.length > 0) throw new EnvironmentError(faults);
  return environment;
}

/** Whether the process runs in production, by the convention of Node's ecosystem (`NODE_ENV`). */
export function isProduction(): boolean {
  return process.env['NODE_ENV'] === 'production';
}

/** The value as an error message shows it; keys are never shown, nor are URLs, which can contain a password. */
function shown(name: string, value: string): string {
  return /URL|TOKEN|SECRET|API_KEY/.test(name) ? '' : `, not ${JSON.stringify(value.slice(0, 80))}`;
}
