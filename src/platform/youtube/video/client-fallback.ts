import type { YoutubeClient } from '../../../config/environment.js';
import type { VideoFailureCode } from '../../../domain/transcript.js';
import { type FailedResponse, isHardRefusal, isUnreached } from '../egress/upstream-response.js';
import type { PlayerProblem } from './player-response.js';

/**
 * Whom a finding concerns. `doubt`: the video, the client or the address, which an examination finds out. `egress`: no response
 * of the platform arrived.
 */
type Concern = 'address' | 'doubt' | 'egress' | 'client' | 'video' | 'nobody';

/**
 * What was found out with one client that returned no text although another may, with the failure code when none did: the most
 * important first. A refusal on any client is never reported as missing captions.
 */
const FINDINGS = {
  /** 429, a captcha or consent page; or a control was refused; or the egress is paused. */
  'address-refused': { code: 'upstream_blocked', about: 'address' },
  /** A bot check, a refused session, a 403, an empty response, a response about another video. */
  refused: { code: 'upstream_blocked', about: 'doubt' },
  /** A filter on the network of the service refuses the video: another egress may serve it. */
  'network-restricted': { code: 'upstream_blocked', about: 'doubt' },
  /** The text of the selected track was refused or empty although its URL requires no token. */
  'text-refused': { code: 'upstream_blocked', about: 'doubt' },
  /** The URL of the selected track requires a PO token, so it was not requested; or WEB was refused despite its token. */
  'token-required': { code: 'upstream_blocked', about: 'video' },
  /** Not sent: the pace or the load cannot serve it before the deadline. */
  busy: { code: 'upstream_busy', about: 'nobody' },
  timeout: { code: 'upstream_timeout', about: 'egress' },
  /** The response could not be read. */
  failure: { code: 'upstream_failure', about: 'nobody' },
  /** The connection failed, or something else than the platform answered. */
  unreached: { code: 'upstream_failure', about: 'egress' },
  'unknown-status': { code: 'upstream_failure', about: 'doubt' },
  /** The platform no longer serves the client's version. Unavailable according to the others is not certain. */
  'client-retired': { code: 'upstream_failure', about: 'client' },
  /** Playable without captions on an app, while WEB may list more. */
  'no-captions': { code: 'transcript_unavailable', about: 'video' },
  unplayable: { code: 'video_unavailable', about: 'doubt' },
  unavailable: { code: 'video_unavailable', about: 'doubt' },
} as const satisfies Record<string, { code: VideoFailureCode; about: Concern }>;

export type FindingKind = keyof typeof FINDINGS;

/** What was found out with one client; null for what concerns all. */
export interface VideoFinding {
  client: YoutubeClient | null;
  kind: FindingKind;
}

/** `code`: final, a fact about the video that every client reports. `finding`: the next client is tried. */
type NextStep = { code: VideoFailureCode; finding?: never } | { finding: FindingKind; code?: never };

/**
 * What a player response leads to. Unplayable and unavailable move on because one client alone is not reliable: headsets
 * report them for videos made for kids (recorded), retired versions for any video, and a refused address too. The facts that
 * stop have a field or a wording of their own, which is the same on each of the recorded clients.
 */
const NEXT_STEPS: Readonly<Record<PlayerProblem, NextStep>> = {
  'no-captions': { code: 'transcript_unavailable' },
  private: { code: 'video_private' },
  'members-only': { code: 'video_members_only' },
  'age-restricted': { code: 'video_age_restricted' },
  live: { code: 'video_live' },
  upcoming: { code: 'video_not_live_yet' },
  'bot-check': { finding: 'refused' },
  'session-refused': { finding: 'refused' },
  'other-video': { finding: 'refused' },
  'network-restricted': { finding: 'network-restricted' },
  'client-retired': { finding: 'client-retired' },
  unplayable: { finding: 'unplayable' },
  unavailable: { finding: 'unavailable' },
  'unknown-status': { finding: 'unknown-status' },
};

/**
 * The next step after a player response. Every client lists captions, so a playable video without any has none, also when an
 * earlier client was refused. But a client that listed tracks proves that the video has captions, whether or not their text
 * was served: a later one that reports otherwise is wrong about the video.
 *
 * @param sawTracks whether an earlier client listed the requested tracks
 */
export function stepAfter(problem: PlayerProblem, sawTracks: boolean): NextStep {
  const step = NEXT_STEPS[problem];
  return step.code !== undefined && sawTracks ? { finding: 'unplayable' } : step;
}

/**
 * The app of each client: what two clients of one app report is one fact. Headsets report videos made for kids as unplayable or
 * unavailable (VISIONOS recorded, ANDROID_VR in a maintained client's source).
 */
const APPS: Readonly<Record<YoutubeClient, 'headset' | 'android' | 'ios' | 'web'>> = {
  VISIONOS: 'headset',
  ANDROID_VR: 'headset',
  ANDROID: 'android',
  ANDROID_REEL: 'android',
  IOS: 'ios',
  WEB: 'web',
};

/** Whether a finding says that the video is unavailable. */
export function isUnavailability(kind: FindingKind): boolean {
  return kind === 'unplayable' || kind === 'unavailable';
}

/** Whether whom a finding concerns is unknown. */
export function isDoubt(kind: FindingKind): boolean {
  return FINDINGS[kind].about === 'doubt';
}

/** Whether no response of the platform arrived. */
export function isOfEgress(kind: FindingKind): boolean {
  return FINDINGS[kind].about === 'egress';
}

/** Whether this is a refusal of the caller on one client, rather than a failure or a fact about the video. */
export function isRefusal(kind: FindingKind): boolean {
  return FINDINGS[kind].code === 'upstream_blocked';
}

/** How many apps doubt the video, or the caller. */
export function doubtingApps(findings: readonly VideoFinding[]): number {
  return new Set(doubtingClients(findings).map((client) => APPS[client])).size;
}

/** One client of each other app than the given client's: of an app the first that is not doubted, those that are not doubted first. */
export function otherApps(
  client: YoutubeClient,
  clients: readonly YoutubeClient[],
  isDoubted: (other: YoutubeClient) => boolean,
): YoutubeClient[] {
  const others = clients.filter((other) => APPS[other] !== APPS[client]);
  const ordered = others.toSorted((one, other) => Number(isDoubted(one)) - Number(isDoubted(other)));
  return ordered.filter((each, index) => ordered.findIndex((other) => APPS[other] === APPS[each]) === index);
}

/** The clients that doubt the video, or the caller. */
function doubtingClients(findings: readonly VideoFinding[]): YoutubeClient[] {
  return findings.flatMap(({ client, kind }) => (client !== null && isDoubt(kind) ? [client] : []));
}

/** The clients that play videos made for kids, about which the word of a headset counts for nothing, the surest first. */
const KIDS_CLIENTS: readonly YoutubeClient[] = ['ANDROID_REEL', 'ANDROID'];

/**
 * The next of the remaining clients. After a word that the video is unavailable, one that plays videos made for kids comes
 * first; after a refusal, another app.
 */
export function nextClient(
  remaining: readonly YoutubeClient[],
  findings: readonly VideoFinding[],
): YoutubeClient | undefined {
  if (findings.some(({ kind }) => kind === 'no-captions')) return remaining.find((client) => client === 'WEB');
  if (findings.some(({ kind }) => isUnavailability(kind))) {
    const kids = KIDS_CLIENTS.find((client) => remaining.includes(client));
    if (kids) return kids;
  }
  const apps = new Set(doubtingClients(findings).map((client) => APPS[client]));
  return remaining.find((client) => !apps.has(APPS[client])) ?? remaining[0];
}

/**
 * The client whose word decides that the video is unavailable: two apps report it, the reel or else another client that plays
 * videos made for kids among them, and nothing was refused. Null while that is open.
 *
 * @param remaining the clients that were not asked yet
 */
export function unavailableAccordingTo(
  findings: readonly VideoFinding[],
  remaining: readonly YoutubeClient[],
): YoutubeClient | null {
  const reports = findings.flatMap(({ client, kind }) => (client !== null && isUnavailability(kind) ? [client] : []));
  const apps = new Set(reports.map((client) => APPS[client]));
  if (apps.size < 2 || findings.some(({ kind }) => isRefusal(kind))) return null;
  const surest = KIDS_CLIENTS.find((client) => reports.includes(client) || remaining.includes(client));
  if (surest) return reports.includes(surest) ? surest : null;
  return reports.find((client) => APPS[client] !== 'headset') ?? null;
}

/** The finding of a request for a player response or a text that has no readable response. */
export function findingOf(response: FailedResponse | { kind: 'unparsable' }, what: 'player' | 'text'): FindingKind {
  if (response.kind === 'busy' || response.kind === 'timeout') return response.kind;
  if (response.kind === 'blocked') {
    if (isHardRefusal(response) || response.reason === 'exit-shut') return 'address-refused';
    return what === 'player' ? 'refused' : 'text-refused';
  }
  return isUnreached(response) ? 'unreached' : 'failure';
}

/** The failure code when no client returned the text. */
export function concludeFailure(findings: readonly VideoFinding[]): VideoFailureCode {
  const [, found] = Object.entries(FINDINGS).find(([name]) => findings.some(({ kind }) => kind === name)) ?? [];
  return found?.code ?? 'upstream_failure';
}
