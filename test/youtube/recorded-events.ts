import { Logger } from '@nestjs/common';

export type LoggedEvent = { event: string } & Record<string, unknown>;

/** The events that are logged from now on, in the place of the log. */
export function recordedEvents(): LoggedEvent[] {
  const events: LoggedEvent[] = [];
  const record = (event: LoggedEvent) => void events.push(event);
  Logger.overrideLogger({ log: record, warn: record, error: record });
  return events;
}
