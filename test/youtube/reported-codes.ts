import type { FaultKind } from '../fake-youtube/faults/fault-registry.js';

/** The error codes for failures of the platform. */
type ReportedAs = 'upstream_blocked' | 'upstream_timeout' | 'upstream_failure';

/** The error code of each persistent fault. */
export const REPORTED_AS: Readonly<Record<FaultKind, ReportedAs>> = {
  '429': 'upstream_blocked',
  '429-retry-after': 'upstream_blocked',
  '500': 'upstream_failure',
  reset: 'upstream_failure',
  cut: 'upstream_failure',
  'half-closed': 'upstream_failure',
  hang: 'upstream_timeout',
  empty: 'upstream_blocked',
  captcha: 'upstream_blocked',
  consent: 'upstream_blocked',
  'bot-check': 'upstream_blocked',
  truncated: 'upstream_failure',
  'wrong-charset': 'upstream_failure',
  'not-json': 'upstream_failure',
  'slow-drip': 'upstream_timeout',
  huge: 'upstream_failure',
  redirect: 'upstream_failure',
  retired: 'upstream_failure',
  'retired-reason': 'upstream_failure',
  'retired-subreason': 'upstream_failure',
  'retired-screen': 'upstream_failure',
  reload: 'upstream_blocked',
  'reload-screen': 'upstream_blocked',
  'player-captcha': 'upstream_blocked',
  'bot-check-renewed': 'upstream_blocked',
  'token-enforced': 'upstream_blocked',
  'sorry-200': 'upstream_blocked',
  'sorry-403': 'upstream_blocked',
  'sorry-503': 'upstream_blocked',
  forbidden: 'upstream_blocked',
  'content-unavailable': 'upstream_blocked',
  'network-restricted': 'upstream_blocked',
  portal: 'upstream_failure',
  // No video depends on lists.
  incomplete: 'upstream_failure',
  'unknown-error': 'upstream_failure',
  // No video depends on the feed.
  'feed-unavailable': 'upstream_failure',
};
