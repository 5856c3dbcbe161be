import { botCheck, reload } from '../calls/playability.js';
import type { JsonObject } from '../json.js';

/*
 * The faults that are a response of a given form: a page, or the playability of a player response.
 */

const UNAVAILABLE = 'Video unavailable';

/** Playabilities of player and reel responses that refuse a caller or a client version. Each comes without video details. */
export const REFUSING_PLAYABILITIES = {
  'bot-check-renewed': botCheck(),
  reload: reload(),
  'reload-screen': {
    status: 'UNPLAYABLE',
    reason: UNAVAILABLE,
    ...screen(UNAVAILABLE, 'The page needs to be reloaded.'),
  },
  'content-unavailable': {
    status: 'UNPLAYABLE',
    reason: UNAVAILABLE,
    ...screen(UNAVAILABLE, 'This content isn’t available.'),
  },
  'network-restricted': {
    status: 'ERROR',
    reason: UNAVAILABLE,
    ...screen(
      UNAVAILABLE,
      'This video is restricted. Please check the Google Workspace administrator and/or the network administrator restrictions.',
    ),
  },
  'player-captcha': {
    status: 'ERROR',
    reason: UNAVAILABLE,
    errorScreen: {
      playerCaptchaViewModel: { headerText: { content: 'Confirm that you are a person' }, siteKey: 'fake-youtube' },
    },
  },
  'retired-reason': {
    status: 'ERROR',
    reason: 'The following content is not available on this app. Watch on the latest version of YouTube.',
  },
  'retired-subreason': {
    status: 'UNPLAYABLE',
    reason: UNAVAILABLE,
    ...screen(UNAVAILABLE, 'Watch this content on the latest version of YouTube.'),
  },
  'retired-screen': {
    status: 'ERROR',
    reason: 'This video is unavailable',
    ...screen('YouTube is no longer supported on this application or device.'),
  },
} as const satisfies Record<string, JsonObject>;

function screen(reason: string, subreason?: string): JsonObject {
  const text = (content: string): JsonObject => ({ runs: [{ text: content }] });
  const shown = { reason: text(reason), ...(subreason !== undefined && { subreason: text(subreason) }) };
  return { errorScreen: { playerErrorMessageRenderer: { ...shown, icon: { iconType: 'ERROR_OUTLINE' } } } };
}

/** The page of Google's front end for automated traffic. */
const SORRY =
  '<!DOCTYPE html><html lang="en"><head><title>Sorry...</title></head><body><h1>We\'re sorry...</h1>' +
  "<p>... but your computer or network may be sending automated queries. To protect our users, we can't process " +
  'your request right now.</p><a href="https://support.google.com/websearch/answer/86640">Google Help</a></body></html>';
const TOO_MANY_REQUESTS = '<!DOCTYPE html><title>429</title><p>Too many requests.';
/** The page for an IP address that sent too many requests, with any status. */
const CAPTCHA =
  '<!DOCTYPE html>\n<html><body><p>There have been a great many requests from your network. Show that you are a person.</p>\n' +
  '<form action="/das_captcha?fw=1" method="POST"><div class="g-recaptcha" data-sitekey="fake-youtube"></div></form></body></html>';
/** The page for a visitor from the European Union without a consent cookie. */
const CONSENT =
  '<!DOCTYPE html>\n<html lang="en"><head><title>Before you continue</title></head><body>\n' +
  '<form action="https://consent.youtube.com/s" method="POST" style="display:inline;"><button>Reject all</button></form></body></html>';

/** A response with a given body: HTML, or JSON for an object. */
interface Page {
  status: number;
  body: string | JsonObject;
}

export const PAGES = {
  '429': { status: 429, body: TOO_MANY_REQUESTS },
  '429-retry-after': { status: 429, body: TOO_MANY_REQUESTS },
  '500': { status: 500, body: { error: { code: 500, message: 'Internal error encountered.', status: 'INTERNAL' } } },
  captcha: { status: 200, body: CAPTCHA },
  consent: { status: 200, body: CONSENT },
  redirect: { status: 302, body: '' },
  retired: {
    status: 400,
    body: { error: { code: 400, message: 'Precondition check failed.', status: 'FAILED_PRECONDITION' } },
  },
  'token-enforced': { status: 200, body: '' },
  'sorry-200': { status: 200, body: SORRY },
  'sorry-403': { status: 403, body: SORRY },
  'sorry-503': { status: 503, body: SORRY },
  forbidden: { status: 403, body: '' },
  portal: { status: 200, body: '<!DOCTYPE html><title>Harbour Wi-Fi</title><p>Sign in to use this network.' },
  incomplete: { status: 200, body: { responseContext: {}, trackingParams: 'x' } },
  'unknown-error': {
    status: 200,
    body: {
      responseContext: {},
      alerts: [{ alertRenderer: { type: 'ERROR', text: { simpleText: 'Unknown error' } } }],
    },
  },
  'feed-unavailable': {
    status: 404,
    body: '<!DOCTYPE html><html lang=en><title>Error 404 (Not Found)!!1</title></html>',
  },
} as const satisfies Record<string, Page>;
