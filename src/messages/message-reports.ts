import { Logger } from '@nestjs/common';
import { causeText } from '../http/as-domain-error.js';
import { RefusalSampler } from '../observability/logging/refusal-sampler.js';

const CAUSE_CHARACTERS_MAX = 200;

/** Logs what callers do wrong below the level of messages: at most 20 short lines of each fault in ten seconds. */
export class MessageReports {
  private readonly logger = new Logger('Messages');
  private readonly sampler = new RefusalSampler((counts) =>
    this.logger.warn({ event: 'message_faults_not_logged', counts }),
  );

  /** @param fault one of a fixed number of names */
  report(fault: string, error?: unknown): void {
    if (!this.sampler.allows(fault)) return;
    const cause = error === undefined ? undefined : causeText(error).slice(0, CAUSE_CHARACTERS_MAX);
    this.logger.warn({ event: 'message_fault', fault, ...(cause !== undefined && { cause }) });
  }
}
