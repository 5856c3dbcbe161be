import type { LoggerService } from '@nestjs/common';
import { LOG_LEVELS, type Environment } from '../../config/environment.js';
import { escapeInvisible } from '../../observability/logging/redaction.js';
import { redactApiKeys } from '../../domain/api-key-text.js';

type LogLevel = Environment['LOG_LEVEL'];

/**
 * Logs of a command, one line each to standard error, because standard output carries the result only. The framework's
 * own messages are logged at `debug`.
 */
export class CommandLogger implements LoggerService {
  constructor(private readonly level: LogLevel) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    // Nest rethrows startup errors after logging them, and runCommand prints them.
    if (rest.at(-1) !== 'ExceptionHandler') this.write('error', message, rest);
  }

  private write(level: LogLevel, message: unknown, rest: readonly unknown[]): void {
    if (LOG_LEVELS.indexOf(level) > LOG_LEVELS.indexOf(this.level) || this.level === 'silent') return;
    const context = rest.at(-1);
    const text = message instanceof Error ? message.message : format(message);
    const line = `${level}: ${typeof context === 'string' ? `${context}: ` : ''}${text}`;
    process.stderr.write(`${escapeInvisible(redactApiKeys(line).replace(/\s+/g, ' '))}\n`);
  }
}

function format(message: unknown): string {
  return typeof message === 'string' ? message : JSON.stringify(message);
}
