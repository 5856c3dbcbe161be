import { ChannelTranscriptsError } from '@channel-transcripts/client';
import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';

/**
 * The status of each error that the callers of this program may see, also of the client's own `no_response`. Those about the program itself are not among them: its
 * credential, plan and quota, a route that the service does not have, and what later versions of the service add.
 */
const STATUSES = new Map(
  Object.entries({
    invalid_request: 400,
    channel_not_found: 404,
    video_not_found: 404,
    playlist_not_found: 404,
    job_not_found: 404,
    subscription_not_found: 404,
    transcript_unavailable: 404,
    language_unavailable: 404,
    video_unavailable: 404,
    video_private: 404,
    video_members_only: 404,
    video_age_restricted: 404,
    video_not_live_yet: 409,
    video_live: 409,
    job_finished: 409,
    idempotency_conflict: 409,
    conflict: 409,
    results_expired: 410,
    cursor_unknown: 410,
    rate_limited: 429,
    too_many_jobs: 429,
    too_many_subscriptions: 429,
    no_response: 502,
    upstream_failure: 502,
    upstream_blocked: 502,
    upstream_busy: 503,
    service_unavailable: 503,
    upstream_timeout: 504,
  }),
);
const TOO_MANY_REQUESTS = 429;
const BAD_GATEWAY = 502;

/** Undefined for what is hidden. A response that is not of the service is hidden unless it passes, as when a proxy cannot reach it. */
function statusOf({ code, retryable }: ChannelTranscriptsError): number | undefined {
  return code === 'unexpected_response' && retryable ? BAD_GATEWAY : STATUSES.get(code);
}

/** What Express and Fastify have in common. */
interface HttpReply {
  header(name: string, value: string): unknown;
  status(code: number): { send(body: object): unknown };
  headersSent?: boolean;
  sent?: boolean;
  destroy?(): unknown;
  raw?: { destroy(): unknown };
}

/**
 * Answers HTTP requests whose handler threw a `ChannelTranscriptsError`: `app.useGlobalFilters(new ChannelTranscriptsExceptionFilter())`.
 *
 * Errors about the request keep status, code and message; limits and failures of the service keep status, code and `Retry-After`;
 * failures of a proxy in front of it that pass are 502 with their `Retry-After`. The others, such as a key that is not valid any
 * more or a used quota, are 502 `transcripts_unavailable`: the caller of this program can do nothing about them, and need not know
 * them. The log of the program has what was thrown.
 */
@Catch(ChannelTranscriptsError)
export class ChannelTranscriptsExceptionFilter implements ExceptionFilter<ChannelTranscriptsError> {
  private readonly logger = new Logger(ChannelTranscriptsExceptionFilter.name);

  catch(error: ChannelTranscriptsError, host: ArgumentsHost): Observable<never> | undefined {
    // Programs that answer messages have codes of their own.
    if (host.getType() === 'rpc') return throwError(() => error);
    // Others, such as GraphQL, would take an Observable as the result.
    if (host.getType() !== 'http') throw error;
    const reply = host.switchToHttp().getResponse<HttpReply>();
    const status = statusOf(error);
    const { code, message, retryable, requestId } = error;
    if (status === undefined || status >= TOO_MANY_REQUESTS)
      this.logger.error(`${code}: ${message}${requestId === undefined ? '' : ` (request ${requestId})`}`);
    if (reply.headersSent ?? reply.sent) {
      // A body that was begun must not look complete.
      (reply.raw ?? reply).destroy?.();
      return undefined;
    }
    if (status === undefined) {
      const hidden = { code: 'transcripts_unavailable', message: 'Transcripts are not available.', retryable: false };
      reply.status(BAD_GATEWAY).send({ statusCode: BAD_GATEWAY, ...hidden });
      return undefined;
    }
    if (error.retryAfterSeconds !== undefined) reply.header('Retry-After', String(error.retryAfterSeconds));
    const shown = status >= TOO_MANY_REQUESTS ? 'Transcripts are not available at the moment.' : message;
    const details: unknown = error.fields['details'];
    const body = { statusCode: status, code, message: shown, retryable };
    reply.status(status).send(status === 400 ? { ...body, details } : body);
    return undefined;
  }
}
