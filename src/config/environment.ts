import 'reflect-metadata';
import { isIP } from 'node:net';
import { plainToInstance, Transform } from 'class-transformer';
import {
  IsDefined,
  IsIn,
  IsOptional,
  IsString,
  Matches,
  Max,
  Min,
  MinLength,
  Validate,
  ValidateIf,
  validateSync,
  ValidatorConstraint,
  type ValidationArguments,
  type ValidatorConstraintInterface,
} from 'class-validator';

/** The InnerTube clients that the service knows how to ask for captions. */
export const YOUTUBE_CLIENTS = ['VISIONOS', 'ANDROID', 'ANDROID_VR'] as const;
export type YoutubeClient = (typeof YOUTUBE_CLIENTS)[number];

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** The ways by which calls may come as messages. */
export const MESSAGE_TRANSPORTS = ['tcp', 'nats'] as const;

/** A whole number written in decimal digits; class-transformer's own conversion would take "1e3", " 5" and "0x10" too. */
function WholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): PropertyDecorator {
  const message = `must be a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`}`;
  return (target, key) => {
    Transform(({ value }: { value: unknown }) =>
      typeof value === 'string' ? (/^[0-9]{1,15}$/.test(value) ? Number(value) : Number.NaN) : value,
    )(target, key);
    Min(min, { message })(target, key);
    Max(max, { message })(target, key);
  };
}

function List(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value,
  );
}

const TOKEN_LENGTH_MIN = 32;
/** 32 random hexadecimal digits have fewer once in thirty million tokens. */
const TOKEN_DISTINCT_MIN = 8;
const MAKE_TOKEN = 'make one with: openssl rand -hex 32';

/** A token that nobody can guess: long, and neither a repeated text nor a row of neighbours in the alphabet. */
@ValidatorConstraint()
class UnguessableToken implements ValidatorConstraintInterface {
  validate(value: unknown): boolean {
    return hasTokenForm(value) && !isTrivial(value);
  }

  defaultMessage({ value }: ValidationArguments): string {
    return hasTokenForm(value)
      ? `must not be a repeated or sequential text; ${MAKE_TOKEN}`
      : `must have at least ${TOKEN_LENGTH_MIN} characters: letters, digits and signs, no spaces; ${MAKE_TOKEN}`;
  }
}

function hasTokenForm(value: unknown): value is string {
  return typeof value === 'string' && value.length >= TOKEN_LENGTH_MIN && /^[\x21-\x7e]+$/.test(value);
}

function isTrivial(token: string): boolean {
  if (new Set(token).size < TOKEN_DISTINCT_MIN) return true;
  const codes = Array.from(token, (character) => character.charCodeAt(0));
  const shareOf = (isSo: (code: number, index: number) => boolean): number => codes.filter(isSo).length / codes.length;
  const sequential = shareOf((code, index) => Math.abs(code - (codes[index + 1] ?? 0)) <= 1);
  const repeats = Array.from({ length: Math.floor(codes.length / 2) }, (_, index) => index + 1).some((period) =>
    codes.every((code, index) => index < period || code === codes[index - period]),
  );
  return repeats || sequential > 2 / 3;
}

@ValidatorConstraint()
class UrlOf implements ValidatorConstraintInterface {
  validate(value: unknown, { constraints }: ValidationArguments): boolean {
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.every((url) => {
      if (typeof url !== 'string' || !URL.canParse(url)) return false;
      const { protocol, hostname } = new URL(url);
      return (constraints as string[]).includes(protocol) && hostname !== '';
    });
  }

  defaultMessage({ constraints }: ValidationArguments): string {
    return `must be a URL that starts with ${(constraints as string[]).map((protocol) => `${protocol}//`).join(' or ')}`;
  }
}

@ValidatorConstraint()
class ClientOrder implements ValidatorConstraintInterface {
  validate(value: unknown): boolean {
    const clients: unknown[] = Array.isArray(value) ? value : [];
    return (
      clients.length > 0 &&
      new Set(clients).size === clients.length &&
      clients.every((client) => (YOUTUBE_CLIENTS as readonly unknown[]).includes(client))
    );
  }

  defaultMessage(): string {
    return `must list one or more of ${YOUTUBE_CLIENTS.join(', ')}, each once, separated by commas`;
  }
}

/** The origins that may call from a browser: `*`, or a list of `https://host[:port]`. */
@ValidatorConstraint()
class Origins implements ValidatorConstraintInterface {
  validate(value: unknown): boolean {
    const origins: unknown[] = Array.isArray(value) ? value : [];
    return origins.every(
      (origin) =>
        typeof origin === 'string' &&
        (origin === '*' || (/^https?:/.test(origin) && URL.canParse(origin) && new URL(origin).origin === origin)),
    );
  }

  defaultMessage(): string {
    return 'must be * or origins such as https://app.example.com, separated by commas';
  }
}

/** More proxies in a row than anybody has; a larger number would believe whatever a caller sends. */
const HOPS_MAX = 10;

@ValidatorConstraint()
class TrustedProxies implements ValidatorConstraintInterface {
  validate(value: unknown): boolean {
    if (typeof value !== 'string') return false;
    if (/^[0-9]+$/.test(value)) return Number(value) <= HOPS_MAX;
    return value === 'off' || value.split(',').every((range) => this.isRange(range.trim()));
  }

  defaultMessage({ value }: ValidationArguments): string {
    if (value === 'on' || /\/0+(?:\s*,|\s*$)/.test(String(value))) {
      return (
        'must not trust every address, because any caller could then choose the one that it is counted by: set the number ' +
        'of proxies in front of the service (1 for a single nginx), or their addresses or ranges'
      );
    }
    return (
      `must be off, the number of proxies in front of the service (at most ${HOPS_MAX}), or their addresses, ranges and the ` +
      'names loopback, linklocal and uniquelocal, separated by commas'
    );
  }

  private isRange(range: string): boolean {
    if (['loopback', 'linklocal', 'uniquelocal'].includes(range)) return true;
    const [address = '', bits, ...rest] = range.split('/');
    const version = isIP(address);
    if (version === 0 || rest.length > 0) return false;
    // A range of 0 bits is every address.
    return (
      bits === undefined ||
      (/^[0-9]{1,3}$/.test(bits) && Number(bits) > 0 && Number(bits) <= (version === 4 ? 32 : 128))
    );
  }
}

/**
 * What an operator can choose. Every property is an environment variable of the same name, and its initial value the
 * default. An empty variable counts as unset.
 */
export class Environment {
  @WholeNumber(0, 65_535)
  PORT: number = 3000;

  @IsString()
  @MinLength(1)
  HOST: string = '0.0.0.0';

  /** Unset: an embedded PostgreSQL, kept in `DATA_DIR`. */
  @IsOptional()
  @Validate(UrlOf, ['postgres:', 'postgresql:'])
  DATABASE_URL: string | undefined = undefined;

  @IsString()
  @MinLength(1)
  DATA_DIR: string = './data';

  /** Unset: the cache is kept in memory. */
  @IsOptional()
  @Validate(UrlOf, ['redis:', 'rediss:'])
  REDIS_URL: string | undefined = undefined;

  /** Signs the entries of a shared cache. Unset: derived from `DATABASE_URL`, or stored in `DATA_DIR`. */
  @IsOptional()
  @Validate(UnguessableToken)
  CACHE_SECRET: string | undefined = undefined;

  @WholeNumber(1)
  TRANSCRIPT_TTL_SECONDS: number = 86_400;

  @WholeNumber(1)
  UNAVAILABLE_TTL_SECONDS: number = 3_600;

  @WholeNumber(1)
  UPLOADS_TTL_SECONDS: number = 120;

  @WholeNumber(1)
  CHANNEL_TTL_SECONDS: number = 86_400;

  @WholeNumber(1)
  CACHE_MAX_MEGABYTES: number = 256;

  /** Texts that wait for slow readers, over all calls of the process. */
  @WholeNumber(1, 1_048_576)
  RESPONSE_BUFFER_MAX_MEGABYTES: number = 256;

  @WholeNumber(1, 3_600)
  REQUEST_DEADLINE_SECONDS: number = 45;

  @WholeNumber(0, 3_600)
  SHUTDOWN_GRACE_SECONDS: number = 50;

  /** How long the service still takes requests after it has stopped being ready; a part of the grace. */
  @WholeNumber(0, 3_600)
  SHUTDOWN_DELAY_SECONDS: number = 2;

  /** Calls of one key that may be in flight at once; 0 is no limit. */
  @WholeNumber(0, 10_000)
  CALLS_PER_KEY: number = 10;

  /** Calls that this process answers at once; 0 is no limit. */
  @WholeNumber(0, 100_000)
  CALLS_PER_PROCESS: number = 200;

  /** Calls of one key in a minute; 0 is no limit. */
  @WholeNumber(0, 10_000)
  RATE_LIMIT_PER_MINUTE: number = 60;

  @WholeNumber(1, 1_024)
  UPSTREAM_CONCURRENCY: number = 16;

  @WholeNumber(1, 3_600)
  UPSTREAM_TIMEOUT_SECONDS: number = 10;

  @WholeNumber(0, 10)
  UPSTREAM_RETRIES: number = 2;

  /** Proxies that outgoing requests leave through. */
  @IsOptional()
  @List()
  @Validate(UrlOf, ['http:', 'https:'])
  UPSTREAM_PROXY_URL: string[] | undefined = undefined;

  /** Every outgoing request goes here instead of to the platform: an egress gateway, or the fake YouTube. */
  @IsOptional()
  @Validate(UrlOf, ['http:', 'https:'])
  YOUTUBE_BASE_URL: string | undefined = undefined;

  @List()
  @Validate(ClientOrder)
  YOUTUBE_CLIENTS: YoutubeClient[] = ['VISIONOS', 'ANDROID', 'ANDROID_VR'];

  @IsIn(['feed', 'exact'], { message: 'must be feed or exact' })
  PUBLISH_DATES: 'feed' | 'exact' = 'feed';

  @WholeNumber(0, 2_147_483_647)
  PLAN_FREE_MONTHLY: number = 50;

  @WholeNumber(0, 2_147_483_647)
  PLAN_PRO_MONTHLY: number = 5_000;

  /** Whole months that settled calls are kept beside the current one. */
  @WholeNumber(1, 1_200)
  USAGE_RETENTION_MONTHS: number = 24;

  /** Unset: there is no `/admin`. */
  @IsOptional()
  @Validate(UnguessableToken)
  ADMIN_TOKEN: string | undefined = undefined;

  /** Unset: `/metrics` is open. */
  @IsOptional()
  @Validate(UnguessableToken)
  METRICS_TOKEN: string | undefined = undefined;

  @IsIn(LOG_LEVELS, { message: `must be one of ${LOG_LEVELS.join(', ')}` })
  LOG_LEVEL: (typeof LOG_LEVELS)[number] = 'info';

  /** Whose `X-Forwarded-*` headers are believed: `off`, a number of proxies, or addresses and ranges. */
  @Validate(TrustedProxies)
  TRUST_PROXY: string = 'off';

  /** Serves calls as messages too. Unset: over HTTP only. */
  @IsOptional()
  @IsIn(MESSAGE_TRANSPORTS, { message: 'must be tcp or nats' })
  MESSAGE_TRANSPORT: (typeof MESSAGE_TRANSPORTS)[number] | undefined = undefined;

  @IsString()
  @MinLength(1)
  MESSAGE_HOST: string = '127.0.0.1';

  @WholeNumber(0, 65_535)
  MESSAGE_PORT: number = 3001;

  /** NATS servers, the first of which may carry a user and password, or a token. */
  @ValidateIf(({ MESSAGE_TRANSPORT, NATS_URL }: Environment) => MESSAGE_TRANSPORT === 'nats' || NATS_URL !== undefined)
  @List()
  @IsDefined({ message: 'must be set when MESSAGE_TRANSPORT is nats' })
  @Validate(UrlOf, ['nats:', 'tls:'])
  NATS_URL: string[] | undefined = undefined;

  /** The instances that share a queue group divide the messages among them. */
  @Matches(/^[A-Za-z0-9_-]{1,64}$/, { message: 'must be up to 64 letters, digits, - and _' })
  NATS_QUEUE: string = 'channel-transcripts';

  /** Where traces are sent. Unset: there are none. */
  @IsOptional()
  @Validate(UrlOf, ['http:', 'https:'])
  OTEL_EXPORTER_OTLP_ENDPOINT: string | undefined = undefined;

  @IsOptional()
  @List()
  @Validate(Origins)
  CORS_ORIGINS: string[] | undefined = undefined;
}

/** One or more variables are wrong; `faults` has a line for each, without the value when it could hold a password. */
export class EnvironmentError extends Error {
  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'EnvironmentError';
  }
}

/**
 * Reads and checks the configuration; the only reader of `process.env`.
 *
 * @throws EnvironmentError with one line per fault
 */
export function readEnvironment(variables: Readonly<Record<string, string | undefined>> = process.env): Environment {
  const known = Object.keys(new Environment());
  const given = known.flatMap((name) =>
    variables[name] === undefined || variables[name] === '' ? [] : [[name, variables[name]]],
  );
  const environment = plainToInstance(Environment, Object.fromEntries(given), { exposeDefaultValues: true });
  const faults = validateSync(environment).map(
    ({ property, constraints }) =>
      `${property} ${Object.values(constraints ?? {})[0]}${shown(property, variables[property])}`,
  );
  if (faults.length > 0) throw new EnvironmentError(faults);
  return environment;
}

/** URLs can carry a password, so they are never repeated. */
function shown(name: string, value = ''): string {
  return /URL|TOKEN|SECRET/.test(name) ? '' : `, not ${JSON.stringify(value.slice(0, 80))}`;
}
