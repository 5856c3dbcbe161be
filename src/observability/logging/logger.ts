import type { LoggerService } from '@nestjs/common';
import { destination, pino, stdTimeFunctions, type DestinationStream, type Level, type Logger } from 'pino';
import type { Environment } from '../../config/environment.js';
import { redactApiKeys } from '../../domain/api-key-text.js';
import { activeTraceId } from '../tracing/tracer.js';

/** Removes secrets from a text that is sent to a caller or logged. */
export type Redactor = (text: string) => string;

/** Redacts API keys and the secrets of a configuration; callers send them in the wrong place by mistake. */
export function redactorFor(environment: Environment): Redactor {
  const { ADMIN_TOKEN, METRICS_TOKEN, WEBHOOK_SECRET_KEY = [] } = environment;
  return createRedactor(ADMIN_TOKEN, METRICS_TOKEN, ...WEBHOOK_SECRET_KEY);
}

/** The user and password of a URL: of a proxy, a database, Redis or NATS. */
const CREDENTIALS = /:\/\/[^\s/?#"]+@/g;

/** @param tokens secrets to redact besides API keys, webhook secrets and credentials in URLs; undefined ones are ignored */
export function createRedactor(...tokens: (string | undefined)[]): Redactor {
  const hidden = tokens.flatMap((token) =>
    // JSON escapes quotes and backslashes.
    token === undefined ? [] : [token, JSON.stringify(token).slice(1, -1)],
  );
  return (text) =>
    hidden.reduce((rest, token) => rest.replaceAll(token, '…'), redactApiKeys(text).replace(CREDENTIALS, '://…@'));
}

/** Control, format and separator characters, which change or hide what a terminal displays; line feeds are excluded. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}]|[^\P{Cc}\n]/gu;

/**
 * Escapes invisible characters as JSON does (`\u202e`), so that a terminal displays a log line as it is. In a line of
 * JSON they occur only within strings, whose value does not change.
 */
export function escapeInvisible(line: string): string {
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return line.replace(INVISIBLE, (character) => character.split('').map(escaped).join(''));
}

/** Structured logs: one JSON object per line. Secrets that a caller sent in the wrong place are redacted. */
export function createLogger(level: string, to: DestinationStream, redact: Redactor = createRedactor()): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      mixin: () => ({ traceId: activeTraceId() }),
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => escapeInvisible(redact(line)) },
    },
    to,
  );
}

/** Standard output, written synchronously, so that no line is lost when the process ends. */
export function standardOutput(): DestinationStream {
  return destination({ fd: 1, sync: true });
}

/** Contexts of Nest's own messages during the start, which are logged at the level debug, or not at all for an error. */
const FRAMEWORK = /^(?:ExceptionHandler|Nest\w+|InstanceLoader|RoutesResolver|RouterExplorer)$/;

/** Writes the messages of Nest and of every `Logger` to one pino logger; an object becomes the fields of its line. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  readonly fatal = (message: unknown, ...rest: unknown[]): void => this.write('fatal', message, rest);
  readonly warn = (message: unknown, ...rest: unknown[]): void => this.write('warn', message, rest);
  readonly debug = (message: unknown, ...rest: unknown[]): void => this.write('debug', message, rest);
  readonly verbose = (message: unknown, ...rest: unknown[]): void => this.write('trace', message, rest);

  log(message: unknown, ...rest: unknown[]): void {
    this.write(FRAMEWORK.test(String(rest.at(-1))) ? 'debug' : 'info', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    // Nest rethrows an error of the start, and main.ts prints it as the only line.
    if (!FRAMEWORK.test(String(rest.at(-1)))) this.write('error', message, rest);
  }

  /** Nest passes the context last, preceded by the stack for an error. */
  private write(level: Level, message: unknown, rest: readonly unknown[]): void {
    const context = rest.at(-1);
    const stack = rest.length > 1 ? rest[0] : undefined;
    const where = { ...(typeof context === 'string' && { context }), ...(typeof stack === 'string' && { stack }) };
    if (message instanceof Error) this.logger[level]({ ...where, stack: message.stack }, message.message);
    else if (typeof message === 'object' && message !== null) this.logger[level]({ ...where, ...message });
    else this.logger[level](where, String(message));
  }
}

/**
 * Writes lines that a caller can cause by the thousand: of each kind the first at once, and for those of the next `pauseMs` one
 * more, the last of them with their count as `repeated`.
 */
export class RepeatedLines {
  private readonly recent = new Map<string, { last: object; repeated: number }>();

  constructor(
    private readonly log: (line: object) => void,
    private readonly pauseMs = 1_000,
  ) {}

  /** @param kind one of few, never text from a caller */
  write(kind: string, line: object): void {
    const recent = this.recent.get(kind);
    if (recent) {
      recent.last = line;
      recent.repeated += 1;
      return;
    }
    const begun = { last: line, repeated: 0 };
    this.recent.set(kind, begun);
    this.log(line);
    setTimeout(() => this.end(kind, begun), this.pauseMs).unref();
  }

  private end(kind: string, { last, repeated }: { last: object; repeated: number }): void {
    this.recent.delete(kind);
    if (repeated > 0) this.log({ ...last, repeated });
  }
}
