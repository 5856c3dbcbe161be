import type { Environment } from '../../../config/environment.js';

/** One part that was checked: its area, and which client or egress where there are several. */
export interface Check {
  area: string;
  subject: string;
  works: boolean;
  detail: string;
}

/** What the operator should set or do about the failed checks, most important first. */
export function adviceOf(checks: readonly Check[], environment: Environment): string[] {
  const of = (area: string, works: boolean): Check[] =>
    checks.filter((check) => check.area === area && check.works === works);
  const named = (found: readonly Check[]): string => found.map(({ subject }) => subject).join(',');
  const lookups = [...of('channel', false), ...of('uploads', false)].map(({ detail }) => detail).join();
  const working = of('client', true);
  const failed = of('client', false);
  const retired = failed.filter(({ detail }) => /client-retired|http-4xx/.test(detail));
  const allRefused = working.length === 0 && retired.length < failed.length;
  const advice: string[] = [];

  if (lookups.includes('channel_not_found')) advice.push('Name a channel that exists.');
  else if (of('uploads', true).length > 0 && !checks.some(({ area }) => area === 'videos'))
    advice.push('Name a channel that has uploads with captions: this one has none to try.');
  if (lookups.includes('expected') || of('page shape', false).length > 0)
    advice.push('A newer release of this service: the form of YouTube’s pages has changed.');
  if (working.length > 0 && failed.length > 0) advice.push(`YOUTUBE_CLIENTS=${named(working)}`);
  for (const { subject } of retired)
    advice.push(`YOUTUBE_CLIENT_OVERRIDES={"${subject}":{"clientVersion":"…"}}: its version is no longer served.`);
  if (allRefused || lookups.includes('upstream_blocked') || of('videos', false)[0]?.detail.includes('blocked:'))
    advice.push(
      environment.UPSTREAM_PROXY_URL === undefined
        ? 'UPSTREAM_PROXY_URL: YouTube refuses this address; use residential proxies or a gateway.'
        : 'UPSTREAM_PROXY_URL: YouTube refuses these addresses; use others.',
    );
  if (allRefused && environment.PO_TOKEN_URL === undefined)
    advice.push('PO_TOKEN_URL: captions that need a token are then read as WEB.');
  if (of('egress', true).length > 0 && of('egress', false).length > 0)
    advice.push(`UPSTREAM_PROXY_URL: keep ${named(of('egress', true))}, in the order of the list.`);
  if (of('po token', false).length > 0) advice.push('PO_TOKEN_URL: start the provider, or correct its address.');
  if (of('feed', false).length > 0 && environment.PUBLISH_DATES === 'feed')
    advice.push('PUBLISH_DATES=exact: the feed is unavailable, so dates are null.');
  return advice;
}
