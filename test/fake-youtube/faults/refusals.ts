import { botCheck, reload } from '../calls/playability.js';
import type { JsonObject } from '../json.js';

/*
 * How the platform refuses a caller or a client version, by fault: as the playability of a player response, or as a page.
 */

const UNAVAILABLE = 'Video unavailable';
const RETIRED = 'YouTube is no longer supported on this application or device.';

/** Playabilities of player and reel responses. Each comes without video details. */
export const REFUSING_PLAYABILITIES = {
  'bot-check-renewed': botCheck(),
  reload: reload(),
  'reload-screen': {
    status: 'UNPLAYABLE',
    reason: UNAVAILABLE,
    ...screen(UNAVAILABLE, 'The page needs to be reloaded.'),
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
  'retired-screen': { status: 'ERROR', reason: 'This video is unavailable', ...screen(RETIRED) },
} as const satisfies Record<string, JsonObject>;

/** The page of Google's front end for automated traffic, and a bare 403. */
export const REFUSING_PAGES = {
  'sorry-200': { status: 200, page: sorryPage() },
  'sorry-403': { status: 403, page: sorryPage() },
  'sorry-503': { status: 503, page: sorryPage() },
  forbidden: { status: 403, page: '' },
} as const satisfies Record<string, { status: number; page: string }>;

function screen(reason: string, subreason?: string): JsonObject {
  const text = (content: string): JsonObject => ({ runs: [{ text: content }] });
  return {
    errorScreen: {
      playerErrorMessageRenderer: {
        reason: text(reason),
        ...(subreason !== undefined && { subreason: text(subreason) }),
        icon: { iconType: 'ERROR_OUTLINE' },
      },
    },
  };
}

function sorryPage(): string {
  return (
    '<!DOCTYPE html><html lang="en"><head><title>Sorry...</title></head><body><h1>We\'re sorry...</h1>' +
    "<p>... but your computer or network may be sending automated queries. To protect our users, we can't process " +
    'your request right now.</p><a href="https://support.google.com/websearch/answer/86640">Google Help</a></body></html>'
  );
}

/** The page for an IP address that sent too many requests, with any status. */
export const CAPTCHA_PAGE = `<!DOCTYPE html>
<html>
  <head><title>Fake YouTube</title></head>
  <body>
    <p>There have been a great many requests from your network. Show that you are a person.</p>
    <form action="/das_captcha?fw=1" method="POST">
      <div class="g-recaptcha" data-sitekey="fake-youtube"></div>
      <input type="submit" value="Submit">
    </form>
  </body>
</html>
`;

/** The page for a visitor from the European Union without a consent cookie. */
export const CONSENT_PAGE = `<!DOCTYPE html>
<html lang="en">
  <head><title>Before you continue</title></head>
  <body>
    <form action="https://consent.youtube.com/s" method="POST" style="display:inline;">
      <input type="hidden" name="set_eom" value="true">
      <button>Reject all</button>
    </form>
  </body>
</html>
`;

export const NOT_FOUND_PAGE = `<!DOCTYPE html>
<html lang=en>
  <meta charset=utf-8>
  <title>Error 404 (Not Found)!!1</title>
  <p><b>404.</b> <ins>That’s an error.</ins>
</html>
`;
