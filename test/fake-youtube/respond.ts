import { browse } from './calls/browse.js';
import { feed } from './calls/feed.js';
import { playerPage } from './calls/po-token.js';
import { player } from './calls/player.js';
import { clientVersion, isRetired } from './calls/client-version.js';
import { resolveUrl, visitorId } from './calls/resolve-url.js';
import { timedtext } from './calls/timedtext.js';
import { type FakeResponse, htmlNotFound, invalidArgument } from './rendered-bodies.js';
import type { Incoming, RequestKind } from './incoming-request.js';
import type { ServerState } from './settings.js';

type Responder = (incoming: Incoming, state: ServerState) => FakeResponse;

/** Without a client or with a body that is not JSON these are refused with 400. */
const INNERTUBE: Partial<Record<RequestKind, Responder>> = {
  player,
  reel: player,
  resolve: resolveUrl,
  visitor: (incoming, { visitors }) => visitorId(incoming, visitors),
  'browse-uploads': browse,
  'browse-shorts': browse,
  'browse-playlist': browse,
  'browse-channel': browse,
  'browse-continuation': browse,
};

const OTHERS: Partial<Record<RequestKind, Responder>> = {
  feed,
  timedtext,
  page: playerPage,
  'client-version': (_incoming, { settings }) => clientVersion(settings),
  'po-token': (incoming, { tokens }) => tokens.respond(incoming),
};

/** The response of the platform to a request when nothing goes wrong. */
export function respond(incoming: Incoming, state: ServerState): FakeResponse {
  if (isRetired(incoming, state.settings)) return invalidArgument();
  const innertube = INNERTUBE[incoming.kind];
  if (innertube) return incoming.body && incoming.client !== null ? innertube(incoming, state) : invalidArgument();
  return OTHERS[incoming.kind]?.(incoming, state) ?? htmlNotFound();
}
