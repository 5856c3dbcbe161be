import {
  paceAfterAnswers,
  paceAfterRecovery,
  paceAfterRefusal,
  paceAfterSending,
  UNLIMITED_PACE,
  type PaceState,
} from './request-pace.js';

/** The kinds of requests whose rate is limited, each with a budget of its own on the platform. */
export const PACED_KINDS = ['player', 'captions'] as const;
export type PacedKind = (typeof PACED_KINDS)[number];

const PAUSE_MAX_MS = 3_600_000;
/** How long the duration of a block is expected to be that of the next one. */
const MEASURED_FOR_MS = 24 * 3_600_000;

/** The pause after refusals. Times are milliseconds of the epoch. */
export interface PauseState {
  /** Null while requests are sent. */
  openedAtMs: number | null;
  untilMs: number;
  pauseMs: number;
  /** The requests that were refused; null when the refusal concerned no paced kind. */
  by: PacedKind | null;
  probesRefused: number;
  /** How long the last block by `measuredBy` took that outlasted its first pause, and when it ended. */
  measuredMs: number;
  measuredAtMs: number;
  measuredBy: PacedKind | null;
}

/** The state of one use of an egress, as plain data: replicas share it, and a restarted process reads it. */
export interface EgressState {
  pause: PauseState;
  paces: Readonly<Record<PacedKind, PaceState>>;
}

export const INITIAL_EGRESS_STATE: EgressState = {
  pause: {
    openedAtMs: null,
    untilMs: 0,
    pauseMs: 0,
    by: null,
    probesRefused: 0,
    measuredMs: 0,
    measuredAtMs: 0,
    measuredBy: null,
  },
  paces: { player: UNLIMITED_PACE, captions: UNLIMITED_PACE },
};

/** What changes the state. Events of several replicas are applied one after the other, in the order in which they are shared. */
export type EgressEvent =
  | { kind: 'sent' | 'answered'; paced: PacedKind; count: number; atMs: number }
  /** `exactly`: the duration of the last block does not prolong the pause, which is the platform's `Retry-After`, for one. */
  | { kind: 'opened'; atMs: number; pauseMs: number; exactly: boolean; by: PacedKind | null }
  /** A probe was refused. */
  | { kind: 'reopened'; atMs: number; pauseMs: number }
  | { kind: 'closed'; atMs: number };

/** The state after an event. */
export function applyEgressEvent(state: EgressState, event: EgressEvent): EgressState {
  switch (event.kind) {
    case 'sent':
      return withPace(state, event.paced, (pace) => paceAfterSending(pace, event.count, event.atMs));
    case 'answered':
      return withPace(state, event.paced, (pace) => paceAfterAnswers(pace, event.count));
    case 'opened':
      return opened(state, event);
    case 'reopened':
      return { ...state, pause: reopened(state.pause, event) };
    case 'closed':
      return closed(state, event.atMs);
  }
}

function opened(state: EgressState, event: Extract<EgressEvent, { kind: 'opened' }>): EgressState {
  const { pause } = state;
  const { atMs, by } = event;
  // Another replica was refused for the same reason.
  if (pause.openedAtMs !== null) return state;
  const isMeasured = pause.measuredBy === by && atMs - pause.measuredAtMs < MEASURED_FOR_MS;
  const measuredMs = isMeasured ? pause.measuredMs : 0;
  const pauseMs = Math.min(PAUSE_MAX_MS, event.exactly ? event.pauseMs : Math.max(event.pauseMs, measuredMs));
  const paused = { ...pause, openedAtMs: atMs, untilMs: atMs + pauseMs, pauseMs, by, probesRefused: 0 };
  const next = { ...state, pause: paused };
  return by === null ? next : withPace(next, by, (pace) => paceAfterRefusal(pace, atMs));
}

function reopened(pause: PauseState, { atMs, pauseMs }: { atMs: number; pauseMs: number }): PauseState {
  if (pause.openedAtMs === null) return pause;
  return { ...pause, pauseMs, untilMs: atMs + pauseMs, probesRefused: pause.probesRefused + 1 };
}

function closed(state: EgressState, atMs: number): EgressState {
  const { pause } = state;
  const { openedAtMs, by } = pause;
  if (openedAtMs === null) return state;
  // An egress that nobody used after the pause was not blocked for all that time.
  const endedAtMs = Math.max(openedAtMs, Math.min(atMs, pause.untilMs));
  const measured =
    pause.probesRefused > 0 ? { measuredMs: endedAtMs - openedAtMs, measuredAtMs: endedAtMs, measuredBy: by } : {};
  const next = { ...state, pause: { ...pause, ...measured, openedAtMs: null, untilMs: 0, by: null } };
  return by === null
    ? next
    : withPace(next, by, (pace) => paceAfterRecovery(pace, { refusedAtMs: openedAtMs, endedAtMs, nowMs: atMs }));
}

function withPace(state: EgressState, paced: PacedKind, change: (pace: PaceState) => PaceState): EgressState {
  const pace = state.paces[paced];
  const next = change(pace);
  return next === pace ? state : { ...state, paces: { ...state.paces, [paced]: next } };
}
