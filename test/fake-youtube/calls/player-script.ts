import { type FakeResponse, htmlNotFound, textResponse } from '../fake-response.js';
import type { Incoming } from '../incoming-request.js';

/** The signature timestamp of the player script by default. */
export const SIGNATURE_TIMESTAMP = 20_345;
const PLAYER_ID = '0a1b2c3d';

/** The pages that name the player script, and the script that contains the signature timestamp. */
export function playerPage(incoming: Incoming, signatureTimestamp: number): FakeResponse {
  const { pathname } = incoming.url;
  const script = `/s/player/${PLAYER_ID}/player_ias.vflset/en_US/base.js`;
  if (pathname === '/iframe_api') {
    const api = `/s/player/${PLAYER_ID}/www-widgetapi.vflset/www-widgetapi.js`.replaceAll('/', '\\/');
    return javascript(`var scriptUrl = 'https:\\/\\/www.youtube.com${api}';try{var ttPolicy=null}catch(e){}`);
  }
  if (pathname === '/watch') {
    const config = JSON.stringify({ STS: signatureTimestamp, PLAYER_JS_URL: script, INNERTUBE_CLIENT_NAME: 'WEB' });
    const page = `<!DOCTYPE html><html><head><script>ytcfg.set(${config});</script></head><body></body></html>`;
    return textResponse(200, 'text/html; charset=utf-8', () => page);
  }
  if (!new RegExp(`^/s/player/${PLAYER_ID}/player_(?:ias|es6)\\.vflset/[A-Za-z_]+/base\\.js$`).test(pathname)) {
    return htmlNotFound();
  }
  return javascript(
    'var _yt_player={};(function(g){var window=this;' +
      `var mk=function(a){return{contentPlaybackContext:{signatureTimestamp:${signatureTimestamp},html5Preference:"HTML5_PREF_WANTS"}}};` +
      '})(_yt_player);',
  );
}

function javascript(text: string): FakeResponse {
  return textResponse(200, 'text/javascript; charset=utf-8', () => text);
}
