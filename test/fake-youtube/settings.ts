import { type PlaylistShape } from './calls/playlist-page.js';
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
}

const DEFAULTS: Settings = { latencyMs: 0, playlistShape: 'new', fieldsIgnored: [], consentRequired: false };

export function settingsOf(given: Partial<Settings>): Settings {
  return {
    latencyMs: given.latencyMs ?? DEFAULTS.latencyMs,
    playlistShape: given.playlistShape ?? DEFAULTS.playlistShape,
    fieldsIgnored: given.fieldsIgnored ?? DEFAULTS.fieldsIgnored,
    consentRequired: given.consentRequired ?? DEFAULTS.consentRequired,
  };
}
