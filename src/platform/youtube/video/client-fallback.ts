import { APPS, type YoutubeClient } from '../../../config/environment.js';
import type { VideoFailureCode } from '../../../domain/transcript.js';
import { type FailedResponse, isHardRefusal, isJsonError, isUnreached } from '../egress/upstream-response.js';

/**
 * Whom a finding concerns. `refusal` and `doubt`: the video, the client or the address, which an experiment finds out; by a
 * refusal also the token that WEB sends. `egress`: no response of the platform arrived. `fact`: the video, in words or fields of
 * their own. `video`: the video, if another app agrees.
 */
type Concern = 'address' | 'refusal' | 'doubt' | 'egress' | 'client' | 'fact' | 'video' | 'nobody';

/**
 * What was found out with one client that returned no text although another may, with the failure code when none did: the most
 * important first. A refusal on any client is never reported as missing captions.
 */
const FINDINGS = {
  /** 429, a captcha or consent page; or a control was refused; or the egress is paused. */
  'address-refused': { code: 'upstream_blocked', about: 'address' },
  /** A 403 or an empty response; or what the client said counts for nothing, because it is refused. */
  refused: { code: 'upstream_blocked', about: 'refusal' },
  /** Other visitor data, another client or another egress may be served. */
  'bot-check': { code: 'upstream_blocked', about: 'refusal' },
  'session-refused': { code: 'upstream_blocked', about: 'refusal' },
  /** The response is about another video, as some refusals are. */
  'other-video': { code: 'upstream_blocked', about: 'refusal' },
  /** A filter on the network of the service refuses the video: another egress may serve it, or this one later. */
  'network-restricted': { code: 'upstream_blocked', about: 'doubt' },
  /** The text of the selected track was refused or empty although its URL requires no token. */
  'text-refused': { code: 'upstream_blocked', about: 'refusal' },
  /** The URL of the selected track requires a PO token, so it was not requested; or WEB was refused despite its token. */
  'token-required': { code: 'upstream_blocked', about: 'nobody' },
  /** Not sent: the pace or the load cannot serve it before the deadline. */
  busy: { code: 'upstream_busy', about: 'nobody' },
  timeout: { code: 'upstream_timeout', about: 'egress' },
  /** The response could not be read. */
  failure: { code: 'upstream_failure', about: 'nobody' },
  /** The text of the selected track is longer than the longest that is read, with whichever client. */
  'too-long': { code: 'upstream_failure', about: 'nobody' },
  /** The connection failed, or something else than the platform answered. */
  unreached: { code: 'upstream_failure', about: 'egress' },
  'unknown-status': { code: 'upstream_failure', about: 'doubt' },
  /**
   * The platform no longer serves the client's version, or sends a video that tells to update it. Unavailable according to the
   * others is not certain.
   */
  'client-retired': { code: 'upstream_failure', about: 'client' },
  private: { code: 'video_private', about: 'fact' },
  'members-only': { code: 'video_members_only', about: 'fact' },
  'age-restricted': { code: 'video_age_restricted', about: 'fact' },
  /** Running now, or still processed after its upload or its end, so that its captions are not there yet. */
  live: { code: 'video_live', about: 'fact' },
  upcoming: { code: 'video_not_live_yet', about: 'fact' },
  /** A fact for the country of the egress: another one may be in another country. */
  'country-restricted': { code: 'video_unavailable', about: 'fact' },
  'other-languages': { code: 'language_unavailable', about: 'fact' },
  /** The selected tracks have no words. */
  'empty-captions': { code: 'transcript_unavailable', about: 'fact' },
  /** Playable without captions: one client can stop listing those of every video, and only WEB lists all. */
  'no-captions': { code: 'transcript_unavailable', about: 'video' },
  /**
   * Not playable on this client, but possibly on another. Includes videos that require Premium or a purchase: no field
   * distinguishes these, and none of them is a channel membership.
   */
  unplayable: { code: 'video_unavailable', about: 'doubt' },
  unavailable: { code: 'video_unavailable', about: 'doubt' },
} as const satisfies Record<string, { code: VideoFailureCode; about: Concern }>;

export type FindingKind = keyof typeof FINDINGS;

/** What was found out with one client; null for what concerns all. */
export interface Finding {
  client: YoutubeClient | null;
  kind: FindingKind;
}

/** What an attempt at a video has found so far. */
export interface FoundSoFar {
  readonly findings: readonly Finding[];
  /** The clients that were not asked yet, in their order. */
  readonly remaining: readonly YoutubeClient[];
  /** A client listed tracks in the requested languages, which proves that the video has captions. */
  readonly sawTracks: boolean;
  /** WEB, which lists more captions than the apps, could not be asked. */
  readonly webSkipped: boolean;
  /** What is known of the doubts: `new` until they are examined, `undecided` when a control could not be asked. */
  readonly doubt: 'none' | 'new' | 'undecided' | 'settled';
  /** Whether this is the only video that is doubted at its egress. */
  readonly isAlone: boolean;
  /** Whether another egress can be tried. */
  readonly hasAlternative: boolean;
  /** The number of the attempt through a session of a gateway; null for another egress. */
  readonly session: number | null;
}

export type Step =
  | { do: 'ask'; client: YoutubeClient }
  /** Find out whether the address is served: then what was found is about the video. */
  | { do: 'examine' }
  /** Find out whether a client is served that states what would be final, one of the witnesses. */
  | { do: 'confirm'; kind: FindingKind; witnesses: readonly YoutubeClient[] }
  | { do: 'end' };

/** The sessions of a gateway judge a video one by one; after so many, the control is asked too. */
const SESSIONS_BEFORE_CONTROL = 3;

/** The next step of an attempt at a video whose text has not arrived: the first row that applies. */
export function nextStep(found: FoundSoFar): Step {
  const { findings, remaining, doubt, session } = found;
  const has = (matches: (kind: FindingKind) => boolean) => findings.some(({ kind }) => matches(kind));
  const isOver =
    has((kind) => kind === 'address-refused' || kind === 'busy' || kind === 'too-long') ||
    (found.hasAlternative && has(isOfEgress));
  const fact = findings.find(({ kind }) => FINDINGS[kind].about === 'fact');
  const silent = clientsWith(findings, isSilence);
  // Apps are not shown manual tracks with styling, so WEB has the last word where it can be asked.
  const isWebOpen = found.webSkipped || remaining.includes('WEB');
  const isSilent = silent.includes('WEB') || (!isWebOpen && appsOf(silent).size >= 2);
  const isRefusedTwice = isRefused(found) && doubtingApps(findings) >= 2;
  const isUrgent =
    session === null ? isRefusedTwice || !found.isAlone : isRefusedTwice && session >= SESSIONS_BEFORE_CONTROL;
  // A client that listed tracks proves that the video is available.
  const witness = found.sawTracks || doubt === 'undecided' ? null : unavailableAccordingTo(findings, remaining);
  const next = nextClient(remaining, findings);

  if (isOver) return { do: 'end' };
  if (fact?.client) return { do: 'confirm', kind: fact.kind, witnesses: [fact.client] };
  if (isSilent) return { do: 'confirm', kind: 'no-captions', witnesses: silent };
  if (isUrgent && doubt === 'new') return { do: 'examine' };
  if (witness) return { do: 'confirm', kind: 'unavailable', witnesses: [witness] };
  if (isRefusedTwice) return { do: 'end' };
  return next === undefined ? { do: 'end' } : { do: 'ask', client: next };
}

/** Whether a client was refused, and it is not known to be the video's fault. */
export function isRefused({ doubt, findings }: Pick<FoundSoFar, 'doubt' | 'findings'>): boolean {
  return doubt !== 'settled' && findings.some(({ kind }) => isDoubt(kind) && !isUnavailability(kind));
}

/**
 * The finding of a player response. A client that listed tracks proves that the video has captions, whether or not their text
 * was served: a later one that reports otherwise is wrong about the video.
 *
 * @param sawTracks whether an earlier client listed the requested tracks
 */
export function findingOfPlayer(kind: FindingKind, sawTracks: boolean): FindingKind {
  const { about } = FINDINGS[kind];
  return sawTracks && (about === 'fact' || about === 'video') ? 'unplayable' : kind;
}

function appsOf(clients: readonly YoutubeClient[]): ReadonlySet<string> {
  return new Set(clients.map((client) => APPS[client]));
}

function clientsWith(findings: readonly Finding[], matches: (kind: FindingKind) => boolean): YoutubeClient[] {
  return findings.flatMap(({ client, kind }) => (client !== null && matches(kind) ? [client] : []));
}

/** Whether a client plays the video without captions. */
function isSilence(kind: FindingKind): boolean {
  return kind === 'no-captions';
}

/** Whether a finding says that the video is unavailable. */
export function isUnavailability(kind: FindingKind): boolean {
  return kind === 'unplayable' || kind === 'unavailable';
}

/** Whether whom a finding concerns is unknown. */
export function isDoubt(kind: FindingKind): boolean {
  return FINDINGS[kind].about === 'doubt' || isRefusalOfToken(kind);
}

/** Whether WEB's token can be at fault, when the client is WEB. */
export function isRefusalOfToken(kind: FindingKind): boolean {
  return FINDINGS[kind].about === 'refusal';
}

/** Whether no response of the platform arrived. */
export function isOfEgress(kind: FindingKind): boolean {
  return FINDINGS[kind].about === 'egress';
}

/** Whether this is a refusal of the caller on one client, rather than a failure or a fact about the video. */
export function isRefusal(kind: FindingKind): boolean {
  return FINDINGS[kind].code === 'upstream_blocked';
}

/** Whether a client failed of which this was found. @param isRead whether another one brought the text */
export function isFailureOfClient(kind: FindingKind, isRead: boolean): boolean {
  if (kind === 'failure' || isOfEgress(kind)) return true;
  return kind === 'no-captions' ? isRead : isDoubt(kind) && !isUnavailability(kind);
}

export function codeOf(kind: FindingKind): VideoFailureCode {
  return FINDINGS[kind].code;
}

export function doubtingApps(findings: readonly Finding[]): number {
  return appsOf(clientsWith(findings, isDoubt)).size;
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

/** The clients that play videos made for kids, about which the word of a headset counts for nothing, the surest first. */
const KIDS_CLIENTS: readonly YoutubeClient[] = ['ANDROID_REEL', 'ANDROID'];

/**
 * The next of the remaining clients. After one that plays the video without captions comes WEB, or another app; after a word that
 * the video is unavailable, one that plays videos made for kids; after a refusal, another app.
 */
export function nextClient(
  remaining: readonly YoutubeClient[],
  findings: readonly Finding[],
): YoutubeClient | undefined {
  const silent = appsOf(clientsWith(findings, isSilence));
  if (silent.size > 0)
    return remaining.find((client) => client === 'WEB') ?? remaining.find((client) => !silent.has(APPS[client]));
  if (findings.some(({ kind }) => isUnavailability(kind))) {
    const kids = KIDS_CLIENTS.find((client) => remaining.includes(client));
    if (kids) return kids;
  }
  const apps = appsOf(clientsWith(findings, isDoubt));
  return remaining.find((client) => !apps.has(APPS[client])) ?? remaining[0];
}

/**
 * The client whose word decides that the video is unavailable: two apps report it, the reel or else another client that plays
 * videos made for kids among them, and nothing was refused. Null while that is open.
 *
 * @param remaining the clients that were not asked yet
 */
export function unavailableAccordingTo(
  findings: readonly Finding[],
  remaining: readonly YoutubeClient[],
): YoutubeClient | null {
  const reports = clientsWith(findings, isUnavailability);
  if (appsOf(reports).size < 2 || findings.some(({ kind }) => isRefusal(kind))) return null;
  const surest = KIDS_CLIENTS.find((client) => reports.includes(client) || remaining.includes(client));
  if (surest) return reports.includes(surest) ? surest : null;
  return reports.find((client) => APPS[client] !== 'headset') ?? null;
}

/** The finding of a request for a player response or a text that has no readable response. */
export function findingOf(response: FailedResponse | { kind: 'unparsable' }, what: 'player' | 'captions'): FindingKind {
  // A JSON error of status 400 rejects the request itself, of which only the video differs between videos.
  if (what === 'player' && isJsonError(response, 400)) return 'client-retired';
  if (response.kind === 'busy' || response.kind === 'timeout') return response.kind;
  if (response.kind === 'blocked') {
    if (isHardRefusal(response)) return 'address-refused';
    return what === 'player' ? 'refused' : 'text-refused';
  }
  return isUnreached(response) ? 'unreached' : 'failure';
}

/** The failure code when no client returned the text. */
export function concludeFailure(findings: readonly Finding[]): VideoFailureCode {
  const [, found] = Object.entries(FINDINGS).find(([name]) => findings.some(({ kind }) => kind === name)) ?? [];
  return found?.code ?? 'upstream_failure';
}
