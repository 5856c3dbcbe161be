import { type PlaylistShape } from './calls/playlist-page.js';
import type { BudgetSettings } from './budgets.js';
import { SIGNATURE_TIMESTAMP } from './calls/player-script.js';
import type { Client } from './catalogue/model.js';

/** How the fake YouTube behaves when nothing goes wrong. */
export interface Settings {
  /** Minimum latency of every response. */
  latencyMs: number;
  playlistShape: PlaylistShape;
  /** Clients whose `$fields` is ignored: the platform is only known to honour it for WEB and for ANDROID's reel. */
  fieldsIgnored: readonly Client[];
  /** Whether requests without the cookie `SOCS` are sent to the consent page. */
  consentRequired: boolean;
  /** Whether player requests without visitor data that was issued for their client and address get a bot check. */
  visitorDataRequired: boolean;
  /** The signature timestamp of the current player script, which WEB must send with a PO token. */
  signatureTimestamp: number;
  /** How long a PO token of the provider is valid. */
  poTokenSeconds: number;
  /** What each address may request; null: anything. */
  budgets: BudgetSettings | null;
  /** How much faster than real time budgets, blocks, tokens and caption URLs expire. */
  timeScale: number;
}

const DEFAULTS: Settings = {
  latencyMs: 0,
  playlistShape: 'new',
  fieldsIgnored: [],
  consentRequired: false,
  visitorDataRequired: false,
  signatureTimestamp: SIGNATURE_TIMESTAMP,
  poTokenSeconds: 6 * 3_600,
  budgets: null,
  timeScale: 1,
};

export function settingsOf(given: Partial<Settings>): Settings {
  return {
    latencyMs: given.latencyMs ?? DEFAULTS.latencyMs,
    playlistShape: given.playlistShape ?? DEFAULTS.playlistShape,
    fieldsIgnored: given.fieldsIgnored ?? DEFAULTS.fieldsIgnored,
    consentRequired: given.consentRequired ?? DEFAULTS.consentRequired,
    visitorDataRequired: given.visitorDataRequired ?? DEFAULTS.visitorDataRequired,
    signatureTimestamp: given.signatureTimestamp ?? DEFAULTS.signatureTimestamp,
    poTokenSeconds: given.poTokenSeconds ?? DEFAULTS.poTokenSeconds,
    budgets: given.budgets ?? DEFAULTS.budgets,
    timeScale: given.timeScale ?? DEFAULTS.timeScale,
  };
}
