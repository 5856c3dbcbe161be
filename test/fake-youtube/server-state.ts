import type { PoTokens } from './calls/po-token.js';
import type { Settings } from './settings.js';
import type { Visitors } from './visitors.js';

/** What the responses depend on besides the request and the catalogue. */
export interface ServerState {
  readonly settings: Settings;
  readonly visitors: Visitors;
  readonly tokens: PoTokens;
}
