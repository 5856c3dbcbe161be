import { UpstreamError } from '../../../domain/errors.js';
import type { FailedAnswer } from '../egress/upstream-response.js';

/** Why a channel could not be read, for the log, and what it says about the exit that it was asked through. */
export class ChannelTrouble extends Error {
  constructor(
    message: string,
    readonly finding: 'refused' | 'unreached' | 'nothing',
    readonly retryAfterSeconds: number | null = null,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ChannelTrouble';
  }
}

/** What a call gets when the channel could not be read: the code, with the private cause for the log. */
export function upstreamError(
  answer: FailedAnswer | { kind: 'misread'; expected: string },
  subject: string,
): UpstreamError {
  switch (answer.kind) {
    case 'blocked':
      return new UpstreamError(
        'upstream_blocked',
        new ChannelTrouble(`${subject}: ${answer.reason}`, 'refused', answer.retryAfterSeconds),
      );
    case 'timeout':
      return new UpstreamError('upstream_timeout', new ChannelTrouble(`${subject}: no answer in time`, 'nothing'));
    case 'http-error':
      return new UpstreamError('upstream_failure', new ChannelTrouble(`${subject}: HTTP ${answer.status}`, 'nothing'));
    case 'network':
      return new UpstreamError(
        'upstream_failure',
        new ChannelTrouble(`${subject}: connection failed`, 'unreached', null, answer.cause),
      );
    case 'unreadable':
    case 'misread':
      return new UpstreamError(
        'upstream_failure',
        new ChannelTrouble(`${subject}: expected ${answer.expected}`, 'nothing'),
      );
  }
}
