import type { LoggerService } from '@nestjs/common';
import { LOG_LEVELS, type Environment } from '../../config/environment.js';
import { escapeInvisible } from '../../http/escape-invisible.js';
import { redactApiKeys } from '../../organizations/api-key.js';

type LogLevel = Environment['LOG_LEVEL'];

/**
 * Logs of a command: to standard error, a line each, so that standard output holds the answer alone. What the framework
 * tells about itself shows from `LOG_LEVEL=debug` on.
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
    // What the framework catches at the start it throws again, and then it becomes the command's one line.
    if (rest.at(-1) !== 'ExceptionHandler') this.write('error', message, rest);
  }

  private write(level: LogLevel, message: unknown, rest: readonly unknown[]): void {
    if (LOG_LEVELS.indexOf(level) > LOG_LEVELS.indexOf(this.level) || this.level === 'silent') return;
    const context = rest.at(-1);
    const text = message instanceof Error ? message.message : inspected(message);
    const line = `${level}: ${typeof context === 'string' ? `${context}: ` : ''}${text}`;
    process.stderr.write(`${escapeInvisible(redactApiKeys(line).replace(/\s+/g, ' '))}\n`);
  }
}

function inspected(message: unknown): string {
  return typeof message === 'string' ? message : JSON.stringify(message);
}
