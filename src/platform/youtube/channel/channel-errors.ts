import { UpstreamError } from '../../../domain/errors.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import type { ParsedResponse } from '../innertube/innertube-client.js';

/** The reason why a channel could not be read, for the log, and the verdict about the egress. */
export class ChannelReadError extends Error {
  constructor(
    message: string,
    readonly verdict: 'refused' | 'unreached' | 'nothing',
    readonly retryAfterSeconds: number | null = null,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ChannelReadError';
  }
}

/** Whether the platform answered with a JSON error. An HTML page with these statuses comes from a gateway or another server. */
export function isJsonError(
  response: ParsedResponse<unknown>,
  statuses: readonly number[],
): response is Extract<FailedResponse, { kind: 'http-error' }> {
  return response.kind === 'http-error' && response.media === 'json' && statuses.includes(response.status);
}

/** The public error for a channel that could not be read, with the private cause for the log. */
export function upstreamError(
  response: FailedResponse | { kind: 'unparsable'; expected: string },
  subject: string,
): UpstreamError {
  switch (response.kind) {
    case 'blocked':
      return new UpstreamError(
        'upstream_blocked',
        new ChannelReadError(`${subject}: ${response.reason}`, 'refused', response.retryAfterSeconds),
      );
    // Requests for channels are not paced, so this cannot happen; it would be a timeout before the deadline.
    case 'busy':
    case 'timeout':
      return new UpstreamError('upstream_timeout', new ChannelReadError(`${subject}: no response in time`, 'nothing'));
    case 'http-error':
      return new UpstreamError(
        'upstream_failure',
        new ChannelReadError(`${subject}: HTTP ${response.status}`, 'nothing'),
      );
    case 'network':
      return new UpstreamError(
        'upstream_failure',
        new ChannelReadError(`${subject}: connection failed`, 'unreached', null, response.cause),
      );
    case 'unreadable':
    case 'unparsable':
      return new UpstreamError(
        'upstream_failure',
        new ChannelReadError(`${subject}: expected ${response.expected}`, 'nothing'),
      );
  }
}
