import { randomBytes } from 'node:crypto';
import type { Incoming } from '../incoming-request.js';
import { stringAt } from '../json.js';
import { type FakeResponse, htmlNotFound, jsonResponse, textResponse } from '../rendered-bodies.js';

/** As long as bgutil's tokens. */
const VALID_MS = 6 * 3_600_000;

interface IssuedToken {
  contentBinding: string;
  expiresAtMs: number;
}

/** A provider of PO tokens with the interface of bgutil's HTTP server, and the platform's knowledge of valid tokens. */
export class PoTokens {
  private readonly issued = new Map<string, IssuedToken>();

  /** `POST /get_pot`: a token for the video named by `content_binding`. */
  respond(incoming: Incoming): FakeResponse {
    const contentBinding = stringAt(incoming.body, 'content_binding');
    if (contentBinding === undefined) {
      return textResponse(400, 'application/json; charset=utf-8', () => '{"error":"content_binding is required"}');
    }
    const poToken = randomBytes(90).toString('base64url');
    const expiresAtMs = Date.now() + VALID_MS;
    this.issued.set(poToken, { contentBinding, expiresAtMs });
    return jsonResponse(() => ({ contentBinding, poToken, expiresAt: new Date(expiresAtMs).toISOString() }));
  }

  /** Whether a player or caption request of the WEB client has a valid token for its video. */
  accepts({ client, videoId, body, url }: Incoming): boolean {
    const inQuery = url.searchParams.get('c') === 'WEB' ? url.searchParams.get('pot') : null;
    const token = this.issued.get(stringAt(body, 'serviceIntegrityDimensions', 'poToken') ?? inQuery ?? '');
    return client === 'WEB' && token?.contentBinding === videoId && token.expiresAtMs > Date.now();
  }
}

/** That of the current player script, which WEB must send with a PO token. */
export const SIGNATURE_TIMESTAMP = 20_345;
const PLAYER_ID = '0a1b2c3d';

/** The pages that name the player script, and the script that contains the signature timestamp. */
export function playerPage(incoming: Incoming): FakeResponse {
  const { pathname } = incoming.url;
  if (pathname === '/iframe_api') {
    const api = `/s/player/${PLAYER_ID}/www-widgetapi.vflset/www-widgetapi.js`.replaceAll('/', '\\/');
    return javascript(`var scriptUrl = 'https:\\/\\/www.youtube.com${api}';try{var ttPolicy=null}catch(e){}`);
  }
  if (!new RegExp(`^/s/player/${PLAYER_ID}/player_(?:ias|es6)\\.vflset/[A-Za-z_]+/base\\.js$`).test(pathname)) {
    return htmlNotFound();
  }
  return javascript(
    'var _yt_player={};(function(g){var window=this;' +
      `var mk=function(a){return{contentPlaybackContext:{signatureTimestamp:${SIGNATURE_TIMESTAMP},html5Preference:"HTML5_PREF_WANTS"}}};` +
      '})(_yt_player);',
  );
}

function javascript(text: string): FakeResponse {
  return textResponse(200, 'text/javascript; charset=utf-8', () => text);
}
