import { UpstreamError } from '../../../domain/errors.js';
import { type FailedResponse, isHardRefusal, isUnreached, UNREACHED } from '../egress/upstream-response.js';
import type { ParsedResponse, Unparsable } from '../innertube/innertube-client.js';

type FailedReading = FailedResponse | Unparsable;

/** The reason why a channel or list could not be read, for the log. */
export class ChannelReadError extends Error {
  constructor(
    subject: string,
    readonly response: FailedReading,
  ) {
    super(`${subject}: ${reasonOf(response)}`, response.kind === 'network' ? { cause: response.cause } : undefined);
    this.name = 'ChannelReadError';
  }

  /** What it says about the egress. `doubtful`: it or the channel is refused. */
  get about(): 'refused' | 'doubtful' | 'unreached' | 'busy' | 'nothing' {
    const { response } = this;
    if (response.kind === 'busy') return 'busy';
    if (response.kind !== 'blocked') return isUnreached(response) ? 'unreached' : 'nothing';
    return isHardRefusal(response) || response.reason === 'exit-shut' ? 'refused' : 'doubtful';
  }
}

function reasonOf(response: FailedReading): string {
  if ('expected' in response) return `expected ${response.expected}`;
  switch (response.kind) {
    case 'blocked':
      return response.reason;
    case 'busy':
      return 'no turn before the deadline';
    case 'timeout':
      return 'no response in time';
    case 'http-error':
      return `HTTP ${response.status}`;
    case 'network':
      return 'connection failed';
    case 'foreign-page':
      return 'a page that is not the platform’s';
  }
}

/** Whether the platform answered with a JSON error. An HTML page with these statuses comes from a gateway or another server. */
export function isJsonError(response: ParsedResponse<unknown>, ...statuses: number[]): boolean {
  return response.kind === 'http-error' && response.media === 'json' && statuses.includes(response.status);
}

/** The public error for a channel that could not be read, with the private cause for the log. */
export function upstreamError(response: FailedReading, subject: string): UpstreamError {
  const cause = new ChannelReadError(subject, response);
  if (response.kind === 'blocked')
    return new UpstreamError('upstream_blocked', cause, response.retryAfterSeconds ?? undefined);
  if (response.kind === 'busy') return new UpstreamError('upstream_busy', cause, response.retryAfterSeconds);
  if (response.kind === 'timeout') return new UpstreamError('upstream_timeout', cause);
  const message = response.kind === 'network' ? UNREACHED : undefined;
  return new UpstreamError('upstream_failure', cause, undefined, message);
}
