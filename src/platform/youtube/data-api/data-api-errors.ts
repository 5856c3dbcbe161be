import { asArray, asString, at } from '../response-parsing.js';

/**
 * Why the Data API gave no answer. `quota`: the units of the day are used up. `rate`: too many requests in a minute.
 * `refused`: the key is invalid or restricted, or the API is not enabled for its project. `failed`: the API did not work.
 * `declined`: it refused this request alone.
 */
export type DataApiFailure = 'quota' | 'rate' | 'refused' | 'failed' | 'declined';

/** An error response of the Data API. `not-found`: the requested resource does not exist. */
export interface DataApiError {
  kind: DataApiFailure | 'not-found';
  /** The reason that the API stated, from a small vocabulary; never text that could contain the key. */
  reason: string;
}

const QUOTA = new Set(['quotaExceeded', 'dailyLimitExceeded', 'dailyLimitExceededUnreg']);
const RATE = new Set(['rateLimitExceeded', 'userRateLimitExceeded', 'RATE_LIMIT_EXCEEDED']);
const NOT_FOUND = new Set(['playlistNotFound', 'channelNotFound', 'notFound', 'videoNotFound']);
/** Beside every reason that starts with `API_KEY_`. */
const REFUSED = new Set([
  'keyInvalid',
  'keyExpired',
  'accessNotConfigured',
  'SERVICE_DISABLED',
  'CONSUMER_INVALID',
  'CONSUMER_SUSPENDED',
  'ipRefererBlocked',
  'authError',
  'forbidden',
  'required',
]);
const REASON = /^[A-Za-z_]{1,60}$/;

/**
 * Reads an error response: from the reasons in its body in Google's older form (`errors[].reason`) and newer form
 * (`details[].reason`), else from its status. Reasons as in the API's reference and Google's list of error reasons.
 *
 * @param body the parsed JSON, or undefined when the body is not JSON
 */
export function readDataApiError(status: number, body: unknown): DataApiError {
  const error = at(body, 'error');
  const details = asArray(at(error, 'details'));
  const reasons = [...details, ...asArray(at(error, 'errors'))]
    .map((each) => asString(at(each, 'reason')))
    .filter((reason): reason is string => reason !== null && REASON.test(reason));
  const find = (isMeant: (reason: string) => boolean): string | undefined => reasons.find(isMeant);

  const quota = find((reason) => QUOTA.has(reason));
  if (quota !== undefined) return { kind: 'quota', reason: quota };
  const rate = find((reason) => RATE.has(reason));
  if (rate !== undefined || status === 429) {
    // Google's newer form names the limit: "defaultPerDayPerProject" or "defaultPerMinutePerUser".
    const limits = details.map((each) => asString(at(each, 'metadata', 'quota_limit')) ?? '');
    const daily = limits.some((limit) => limit.includes('PerDay'));
    return { kind: daily ? 'quota' : 'rate', reason: rate ?? 'http-429' };
  }
  const refused = find((reason) => reason.startsWith('API_KEY_') || REFUSED.has(reason));
  if (refused !== undefined) return { kind: 'refused', reason: refused };
  if (/\bAPI key\b/i.test(asString(at(error, 'message')) ?? '')) return { kind: 'refused', reason: 'API_KEY_INVALID' };
  if (status === 401) return { kind: 'refused', reason: 'http-401' };
  const missing = find((reason) => NOT_FOUND.has(reason));
  if (status === 404 && missing !== undefined) return { kind: 'not-found', reason: missing };
  // Another server, such as a gateway without this API, or the API's own failure.
  if (error === undefined || status >= 500) return { kind: 'failed', reason: `http-${status}` };
  return { kind: 'declined', reason: reasons[0] ?? `http-${status}` };
}
