import { UpstreamError } from '../../../domain/errors.js';
import { type FailedResponse, isHardRefusal, isUnreached } from '../egress/upstream-response.js';
import type { ParsedResponse } from '../innertube/innertube-client.js';

type FailedReading = FailedResponse | { kind: 'unparsable'; expected: string };

/**
 * The reason why a channel could not be read, for the log, and what it says about the egress. `doubtful`: it or the channel is
 * refused.
 */
export class ChannelReadError extends Error {
  constructor(
    message: string,
    readonly about: 'refused' | 'doubtful' | 'unreached' | 'busy' | 'nothing',
    cause?: unknown,
    /** The platform answered, but with a page that is incomplete or has an unknown form. */
    readonly unparsable = false,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ChannelReadError';
  }
}

/** Whether the platform answered with a JSON error. An HTML page with these statuses comes from a gateway or another server. */
export function isJsonError(response: ParsedResponse<unknown>, ...statuses: number[]): boolean {
  return response.kind === 'http-error' && response.media === 'json' && statuses.includes(response.status);
}

/** The public error for a channel that could not be read, with the private cause for the log. */
export function upstreamError(response: FailedReading, subject: string): UpstreamError {
  const about = aboutEgress(response);
  const failure = (text: string) =>
    new ChannelReadError(`${subject}: ${text}`, about, response.kind === 'network' ? response.cause : undefined);
  switch (response.kind) {
    case 'blocked':
      return new UpstreamError('upstream_blocked', failure(response.reason), response.retryAfterSeconds ?? undefined);
    case 'busy':
      return new UpstreamError('upstream_busy', failure('no turn before the deadline'), response.retryAfterSeconds);
    case 'timeout':
      return new UpstreamError('upstream_timeout', failure('no response in time'));
    case 'http-error':
      return new UpstreamError('upstream_failure', failure(`HTTP ${response.status}`));
    case 'network':
      return new UpstreamError('upstream_failure', failure('connection failed'), undefined, UNREACHED);
    case 'foreign-page':
      return new UpstreamError('upstream_failure', failure('a page that is not the platform’s'));
    case 'unreadable':
      return new UpstreamError('upstream_failure', failure(`expected ${response.expected}`));
    case 'unparsable': {
      const text = `${subject}: expected ${response.expected}`;
      return new UpstreamError('upstream_failure', new ChannelReadError(text, 'nothing', undefined, true));
    }
  }
}

const UNREACHED = 'YouTube could not be reached. Retry later.';

function aboutEgress(response: FailedReading): ChannelReadError['about'] {
  if (response.kind === 'busy') return 'busy';
  if (response.kind !== 'blocked') return isUnreached(response) ? 'unreached' : 'nothing';
  return isHardRefusal(response) || response.reason === 'exit-shut' ? 'refused' : 'doubtful';
}

/** Whether a channel or list could not be read because the platform's page is incomplete or has an unknown form. */
export function isUnparsable(error: unknown): boolean {
  return error instanceof UpstreamError && error.cause instanceof ChannelReadError && error.cause.unparsable;
}
