import type { Environment } from '../../../config/environment.js';
import type { Check, CheckedArea } from './doctor-report.js';

/** What the operator should set or do about the failed checks, most important first. */
export function adviceOf(checks: readonly Check[], environment: Environment): string[] {
  const of = (area: CheckedArea): Check[] => checks.filter((check) => check.area === area);
  const failed = (area: CheckedArea): Check[] => of(area).filter(({ works }) => !works);
  const works = (area: CheckedArea): boolean => of(area).some((check) => check.works);
  const details = (area: CheckedArea): string =>
    failed(area)
      .map(({ detail }) => detail)
      .join();
  const lookups = `${details('channel')},${details('uploads')}`;
  const advice: string[] = [];

  if (lookups.includes('channel_not_found')) advice.push('Name a channel that exists.');
  else if (works('uploads') && of('videos').length === 0)
    advice.push('Name a channel that has uploads with captions: this one has none to try.');
  if (lookups.includes('expected') || failed('page shape').length > 0)
    advice.push('A newer release of this service: the form of YouTube’s pages has changed.');

  advice.push(...clientAdvice(of('client'), environment));
  if (/blocked:/.test(details('videos')) || lookups.includes('upstream_blocked'))
    advice.push(addressAdvice(environment));

  const good = of('egress').filter((check) => check.works);
  if (good.length > 0 && failed('egress').length > 0)
    advice.push(`UPSTREAM_PROXY_URL: keep ${good.map(({ subject }) => subject).join(', ')}, in the order of the list.`);
  if (failed('po token').length > 0) advice.push('PO_TOKEN_URL: start the provider, or correct its address.');
  if (failed('feed').length > 0 && environment.PUBLISH_DATES === 'feed')
    advice.push('PUBLISH_DATES=exact: the feed is unavailable, so dates are null.');
  return [...new Set(advice)];
}

function clientAdvice(clients: readonly Check[], environment: Environment): string[] {
  const working = clients.filter(({ works }) => works);
  const failed = clients.filter(({ works }) => !works);
  const retired = failed.filter(({ detail }) => /client-retired|http-4xx/.test(detail));
  const advice = retired.map(
    ({ subject }) => `YOUTUBE_CLIENT_OVERRIDES={"${subject}":{"clientVersion":"…"}}: its version is no longer served.`,
  );
  if (working.length > 0 && failed.length > 0)
    return [`YOUTUBE_CLIENTS=${working.map(({ subject }) => subject).join(',')}`, ...advice];
  if (working.length > 0 || retired.length === failed.length) return advice;
  advice.push(addressAdvice(environment));
  if (environment.PO_TOKEN_URL === undefined)
    advice.push('PO_TOKEN_URL: captions that need a token are then read as WEB.');
  return advice;
}

function addressAdvice({ UPSTREAM_PROXY_URL }: Environment): string {
  return UPSTREAM_PROXY_URL === undefined
    ? 'UPSTREAM_PROXY_URL: YouTube refuses this address; use residential proxies or a gateway.'
    : 'UPSTREAM_PROXY_URL: YouTube refuses these addresses; use others.';
}
