import { Logger } from '@nestjs/common';

const logger = new Logger('YoutubePlatform');

/** Longer texts are truncated: they may come from the platform. */
const TEXT_LENGTH_MAX = 200;
/** The stack of a fault begins with its message. */
const STACK_LENGTH_MAX = 2_000;

export function report(
  level: 'log' | 'warn' | 'error',
  event: string,
  fields: Readonly<Record<string, unknown>>,
): void {
  const shortened = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.slice(0, name === 'stack' ? STACK_LENGTH_MAX : TEXT_LENGTH_MAX) : value,
  ]);
  logger[level]({ event, ...(Object.fromEntries(shortened) as Record<string, unknown>) });
}
