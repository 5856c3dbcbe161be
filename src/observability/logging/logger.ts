import type { LoggerService } from '@nestjs/common';
import { destination, pino, stdTimeFunctions, type DestinationStream, type Level, type Logger } from 'pino';
import { createRedactor, type Redactor, escapeInvisible } from './redaction.js';
import { activeTraceId } from '../tracing/tracer.js';

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
