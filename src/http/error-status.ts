import { HttpStatus } from '@nestjs/common';
import type { ErrorCode } from '../domain/errors.js';

/** The HTTP status of each error code. */
export const ERROR_STATUS: Record<ErrorCode, HttpStatus> = {
  invalid_request: HttpStatus.BAD_REQUEST,
  unauthorized: HttpStatus.UNAUTHORIZED,
  invalid_api_key: HttpStatus.UNAUTHORIZED,
  plan_limit_exceeded: HttpStatus.PAYMENT_REQUIRED,
  feature_not_in_plan: HttpStatus.FORBIDDEN,
  channel_not_found: HttpStatus.NOT_FOUND,
  video_not_found: HttpStatus.NOT_FOUND,
  playlist_not_found: HttpStatus.NOT_FOUND,
  not_found: HttpStatus.NOT_FOUND,
  method_not_allowed: HttpStatus.METHOD_NOT_ALLOWED,
  conflict: HttpStatus.CONFLICT,
  rate_limited: HttpStatus.TOO_MANY_REQUESTS,
  internal_error: HttpStatus.INTERNAL_SERVER_ERROR,
  upstream_failure: HttpStatus.BAD_GATEWAY,
  upstream_blocked: HttpStatus.BAD_GATEWAY,
  service_unavailable: HttpStatus.SERVICE_UNAVAILABLE,
  upstream_timeout: HttpStatus.GATEWAY_TIMEOUT,
  transcript_unavailable: HttpStatus.NOT_FOUND,
  language_unavailable: HttpStatus.NOT_FOUND,
  video_unavailable: HttpStatus.NOT_FOUND,
  video_private: HttpStatus.NOT_FOUND,
  video_members_only: HttpStatus.NOT_FOUND,
  video_age_restricted: HttpStatus.NOT_FOUND,
  video_not_live_yet: HttpStatus.CONFLICT,
  video_live: HttpStatus.CONFLICT,
  upstream_busy: HttpStatus.SERVICE_UNAVAILABLE,
};
