import type { LoggerService } from '@nestjs/common';
import { destination, pino, stdTimeFunctions, type DestinationStream, type Level, type Logger } from 'pino';
import { escapeInvisible } from '../../http/escape-invisible.js';
import { createRedactor, type Redactor } from '../../http/redaction.js';
import { activeTracer } from '../tracing/tracer.js';

/** Structured logs: one JSON object a line. A secret that turns up in a text by a caller's mistake is masked. */
export function createLogger(level: string, to: DestinationStream, redact: Redactor = createRedactor()): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      mixin: () => {
        const traceId = activeTracer()?.traceId();
        return traceId === undefined ? {} : { traceId };
      },
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => escapeInvisible(redact(line)) },
    },
    to,
  );
}

/** Where the service logs to: standard output, so that a line is never lost when the process ends. */
export function standardOutput(): DestinationStream {
  return destination({ fd: 1, sync: true });
}

/** What the framework tells about its own start is of use to its developers only. */
const FRAMEWORK = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
  'NestMicroservice',
]);

/** Lets Nest and every `Logger` of the service write to one pino logger; an object becomes the fields of its line. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.write(FRAMEWORK.has(String(rest.at(-1))) ? 'debug' : 'info', message, rest);
  }
  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
  }
  error(message: unknown, ...rest: unknown[]): void {
    // What the framework catches at the start it throws again, and then it is the one line of a start that failed.
    if (rest.at(-1) !== 'ExceptionHandler') this.write('error', message, rest);
  }
  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }
  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }
  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  /** Nest passes the context last, and for an error its stack before it. */
  private write(level: Level, message: unknown, rest: readonly unknown[]): void {
    const context = rest.at(-1);
    const stack = rest.length > 1 ? rest[0] : undefined;
    const where = { ...(typeof context === 'string' && { context }), ...(typeof stack === 'string' && { stack }) };
    if (message instanceof Error) this.logger[level]({ ...where, stack: message.stack }, message.message);
    else if (typeof message === 'object' && message !== null) this.logger[level]({ ...where, ...message });
    else this.logger[level](where, String(message));
  }
}
