import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { YoutubeClient } from '../../../config/environment.js';
import { readElement } from '../../../domain/language-codes.js';
import {
  NO_DETAILS,
  type Segment,
  VIDEO_FAILURES,
  type VideoDetails,
  type VideoOutcome,
} from '../../../domain/transcript.js';
import { CHARACTERS_MAX, CUES_MAX, fetchCaption } from './captions.js';
import type { AttemptEnd } from '../egress/attempt.js';
import type { AttemptResult } from '../egress/egress-pool.js';
import type { Doubt, Verdict } from '../egress/egress.js';
import { Experiment } from '../egress/experiment.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { type FailedResponse, UNREACHED } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { WebProofs } from './web-proofs.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import {
  codeOf,
  concludeFailure,
  findingOf,
  findingOfPlayer,
  type Finding,
  type FindingKind,
  type FoundSoFar,
  isDoubt,
  isFailureOfClient,
  isOfEgress,
  isRefusal,
  isRefused,
  isRefusalOfToken,
  isUnavailability,
  nextStep,
  type Step,
} from './client-fallback.js';
import { type ClientResult, ClientOrder } from './client-order.js';
import { type Candidate, requestPlayer } from './player-requests.js';
import { mergeDetails, type PlayerResult } from './player-response.js';
import { type PlayerTrack, selectTracks } from './player-tracks.js';

const TOO_LONG = `The captions of this video have more than ${CUES_MAX} cues or ${CHARACTERS_MAX} characters, which are not read.`;
const ALL_CLIENTS_RETIRED =
  'YouTube no longer serves the client versions that this service uses. Retry later; its operator is alerted.';

/** A client's word is final for so long after it was served. */
const TRUSTED_MS = 60_000;
/** The word of the clients that play videos made for kids, which are rarely the first, for so long. */
const TRUSTED_VERSION_MS = 3_600_000;

const REFUSED_MS = 600_000;
/** With their details, of which a description can have 10,000 characters. */
const REFUSED_CHARACTERS_MAX = 8_000_000;

type FailedOutcome = Extract<VideoOutcome, { ok: false }>;

/**
 * Reads one video through one egress: client after client, until one returns the text or a final reason for having none. What
 * comes next is decided by `nextStep`. A refusal, or a word that could be one, is examined (`Experiment`) before it is reported
 * as a fact or affects anybody else.
 */
@Injectable()
export class VideoReader {
  /** The videos that the platform refuses while it serves others: to ask again would cost everybody requests. */
  private readonly refused = new LRUCache<string, FailedOutcome>({
    maxSize: REFUSED_CHARACTERS_MAX,
    sizeCalculation: (outcome, key) => key.length + JSON.stringify(outcome).length,
    ttl: REFUSED_MS,
    ttlResolution: 0,
  });

  constructor(
    private readonly innertube: InnertubeClient,
    private readonly order: ClientOrder,
    private readonly webProofs: WebProofs,
    private readonly experiment: Experiment,
    private readonly metrics: UpstreamMetrics,
  ) {}

  remembered(videoId: string, languages: readonly string[]): VideoOutcome | undefined {
    return this.refused.get(refusedKey(videoId, languages));
  }

  /** Rejects only when the scope's signal is aborted. */
  async read(videoId: string, languages: readonly string[], scope: RequestScope): Promise<AttemptResult<VideoOutcome>> {
    const video = new VideoAttempt(videoId, languages, scope, this.order.candidates(scope.egress));
    // One client is asked in turn, and nothing confirms what it reports.
    if (this.order.allRetired) video.add(null, 'client-retired');
    let answer: AttemptResult<VideoOutcome> | null = null;
    try {
      while (!answer) {
        const step = nextStep(video);
        switch (step.do) {
          case 'ask':
            answer = await this.ask(step.client, video);
            break;
          case 'examine':
            await this.examine(video, null);
            break;
          case 'confirm':
            answer = await this.confirm(step, video);
            break;
          case 'end':
            return await this.conclude(video);
        }
      }
      return answer;
    } finally {
      this.order.learn(scope.egress, videoId, video.results(answer?.result ?? null));
    }
  }

  /** Asks for the video as a client. Null when another client may return the text. */
  private async ask(client: YoutubeClient, video: VideoAttempt): Promise<AttemptResult<VideoOutcome> | null> {
    const { videoId, scope } = video;
    video.remaining.splice(video.remaining.indexOf(client), 1);
    video.asked.push(client);
    // Read for each client, because the deadline changes when a later caller joins.
    if (performance.now() >= scope.context.deadlineAtMs) {
      video.add(null, 'timeout');
      video.remaining.length = 0;
      return null;
    }
    const proof = client === 'WEB' ? await this.webProofs.get(videoId, scope) : null;
    if (client === 'WEB' && !proof) {
      // Whether the provider of tokens works does not change the outcome without WEB.
      video.webSkipped = true;
      return null;
    }
    const outcome = await this.askPlayer({ client, proof }, video);
    if (proof && video.findings.some((finding) => finding.client === client && isRefusal(finding.kind)))
      this.webProofs.reject(videoId);
    return outcome && { result: outcome, end: 'answered' };
  }

  private async askPlayer(candidate: Candidate, video: VideoAttempt): Promise<VideoOutcome | null> {
    const { client } = candidate;
    const { videoId, scope } = video;
    const response = await requestPlayer(this.innertube, candidate, videoId, scope, ({ kind }) =>
      this.metrics.notice('playability', client, kind),
    );
    if (response.kind !== 'parsed') {
      this.addFailure(candidate, 'player', response, video);
      return null;
    }
    const reading = response.value;
    video.details = mergeDetails(video.details, reading.details);
    if (reading.kind === 'tracks') return this.readTracks(candidate, reading, video);
    const { kind, status, reason, country } = reading;
    if (kind === 'unknown-status') report('warn', 'youtube_unknown_playability', { client, videoId, status, reason });
    if (kind === 'country-restricted') video.message = restrictedIn(country);
    video.add(client, findingOfPlayer(kind, video.sawTracks));
    return null;
  }

  /** Reports a fact when a client that states it is served at this egress; otherwise its word does not count. */
  private async confirm(
    { kind, witnesses }: Extract<Step, { do: 'confirm' }>,
    video: VideoAttempt,
  ): Promise<AttemptResult<VideoOutcome> | null> {
    const { egress, hasAlternative } = video.scope;
    const isDoubtful = isUnavailability(kind);
    // WEB is refused for its token only.
    const isTrusted = (client: YoutubeClient) =>
      isDoubtful
        ? this.order.isVersionServed(client, TRUSTED_VERSION_MS)
        : client === 'WEB' || this.order.isServed(egress, client, TRUSTED_MS);
    const trusted = witnesses.find(isTrusted);
    const witness = trusted ?? witnesses[0] ?? null;
    const verdict = isDoubtful
      ? await this.examine(video, trusted === undefined ? witness : null)
      : trusted !== undefined || witness === null
        ? 'served'
        : await this.settle(
            { kind: 'player', client: witness, sinceMs: performance.now() - TRUSTED_MS },
            witness,
            video,
          );
    // What a client that is refused says counts for nothing.
    if (verdict === 'client-refused' && witness) video.reject(witness, isDoubtful ? 'client-retired' : 'refused');
    if (verdict !== 'served' && (verdict !== 'unknown' || isDoubtful)) return null;
    if (!isDoubtful) egress.uses.video.line.answered('player');
    const result = video.failure(codeOf(kind), video.message);
    const isOfCountry = kind === 'country-restricted';
    // When the control could not be asked no other word is known, and this one is specific.
    const isCertain = verdict === 'served' && !(isOfCountry && hasAlternative);
    return {
      result: isCertain ? result : { ...result, confirmed: false },
      end: isOfCountry ? 'restricted' : 'answered',
    };
  }

  /** Finds out whether the video is at fault: then what its clients found is about it. @param client null for any */
  private async examine(video: VideoAttempt, client: YoutubeClient | null): Promise<Verdict | null> {
    const { firstDoubt } = video;
    if (!firstDoubt) return null;
    const verdict = await this.settle({ ...firstDoubt, client }, client ?? firstDoubt.client, video);
    // Where a client is refused another one was served, so that the address is not.
    if (verdict !== 'address-refused') video.doubt = verdict === 'unknown' ? 'undecided' : 'settled';
    return verdict;
  }

  private async settle(doubt: Doubt, client: YoutubeClient, video: VideoAttempt): Promise<Verdict> {
    const verdict = await this.experiment.settle(doubt, client, video.scope);
    if (verdict === 'address-refused') video.add(null, verdict);
    return verdict;
  }

  /** The result when no client returned a final one. */
  private async conclude(video: VideoAttempt): Promise<AttemptResult<VideoOutcome>> {
    const isSession = video.session !== null && isRefused(video);
    if (video.doubt !== 'settled' && !video.has('address-refused') && !isSession) await this.examine(video, null);
    const concluded = video.conclude();
    const { result, end } = concluded;
    if (video.isRefusedItself) {
      const { videoId, languages, scope } = video;
      report('log', 'youtube_video_refused', { exit: scope.egress.name, videoId, code: result.failure.code });
      if (end === 'answered') this.refused.set(refusedKey(videoId, languages), result);
    }
    return concluded;
  }

  private async readTracks(
    candidate: Candidate,
    { tracks, defaults }: Extract<PlayerResult, { kind: 'tracks' }>,
    video: VideoAttempt,
  ): Promise<VideoOutcome | null> {
    const { client } = candidate;
    this.order.recordServed(video.scope, client, video.videoId, 'player');
    const chosen = selectTracks(tracks, defaults, video.languages);
    if (chosen.length === 0) {
      // An earlier client listed the tracks: their text is withheld, not missing.
      if (video.sawTracks) return null;
      video.message = `${missingTracks(video.languages)} Available: ${[...new Set(tracks.map(describeTrack))].join(', ')}.`;
      video.add(client, 'other-languages');
      return null;
    }
    video.sawTracks = true;
    const missing = chosen.filter((track) => !video.texts.has(trackKey(track)));
    await Promise.all(missing.map((track) => this.fetchTrack(candidate, track, video)));
    // A withheld track is never replaced by one that was not requested: the next client may return all of them.
    if (chosen.some((track) => !video.texts.has(trackKey(track)))) return null;
    const texts = chosen.map(({ track }) => [track, video.texts.get(trackKey({ track })) ?? []] as const);
    const spoken = texts.filter(([, segments]) => segments.length > 0);
    if (spoken.length > 0) {
      const transcript = new Map(spoken.map(([{ languageCode }, segments]) => [languageCode, segments]));
      const used = spoken.map(([{ languageCode, name, generated }]) => [languageCode, { name, generated }] as const);
      return { ok: true, details: video.details, transcript, tracks: Object.fromEntries(used) };
    }
    video.message = 'The captions of this video contain no text.';
    video.add(client, 'empty-captions');
    return null;
  }

  private async fetchTrack(candidate: Candidate, track: PlayerTrack, video: VideoAttempt): Promise<void> {
    const { client, proof } = candidate;
    // The URL requires a PO token: a request would only return an empty body.
    if (track.needsToken && !proof) return video.add(client, 'token-required');
    const { videoId, scope } = video;
    const text = await fetchCaption(this.innertube, client, track, videoId, scope, proof?.poToken);
    if (text.kind === 'text') {
      video.texts.set(trackKey(track), text.segments);
      this.order.recordServed(scope, client, videoId, 'captions');
    } else if (text.kind === 'withheld') video.add(client, 'text-refused');
    else if (text.kind === 'too-long') video.add(client, 'too-long');
    else this.addFailure(candidate, 'captions', text, video);
  }

  /** Adds what a request without a readable response says about its client. */
  private addFailure(
    { client }: Candidate,
    what: 'player' | 'captions',
    response: Exclude<ParsedResponse<unknown>, { kind: 'parsed' }> | FailedResponse,
    video: VideoAttempt,
  ): void {
    const { videoId, scope } = video;
    if ('expected' in response) report('warn', 'youtube_unreadable', { client, videoId, expected: response.expected });
    if (response.kind === 'network')
      report('warn', 'youtube_unreached', { exit: scope.egress.name, videoId, cause: causeOf(response.cause) });
    if (response.kind === 'blocked') video.retryAfterSeconds ??= response.retryAfterSeconds;
    if (response.kind === 'busy') video.busyForSeconds = response.retryAfterSeconds;
    video.add(client, findingOf(response, what), what);
  }
}

class VideoAttempt implements FoundSoFar {
  readonly findings: Finding[] = [];
  readonly asked: YoutubeClient[] = [];
  /** Texts by track: a text that one client returned is not fetched again by the next. */
  readonly texts = new Map<string, readonly Segment[]>();
  details: VideoDetails = NO_DETAILS;
  sawTracks = false;
  webSkipped = false;
  doubt: FoundSoFar['doubt'] = 'none';
  isAlone = true;
  /** The first doubt, by the client that raised it. */
  firstDoubt: (Doubt & { client: YoutubeClient }) | null = null;
  /** The public message of the fact that was found last, where it has one of its own. */
  message: string | undefined;
  /** The platform's. */
  retryAfterSeconds: number | null = null;
  /** When the egress can serve. */
  busyForSeconds: number | null = null;

  /** @param remaining the clients that were not asked yet; the reader removes them */
  constructor(
    readonly videoId: string,
    readonly languages: readonly string[],
    readonly scope: RequestScope,
    readonly remaining: YoutubeClient[],
  ) {}

  get hasAlternative(): boolean {
    return this.scope.hasAlternative;
  }

  get session(): number | null {
    return this.scope.egress.gateway === undefined ? null : this.scope.attempts;
  }

  /** Whether the platform refuses the video while it serves others; a failure that may pass is no refusal. */
  get isRefusedItself(): boolean {
    const code = concludeFailure(this.findings);
    const isDoubted = code === 'upstream_failure' && this.findings.every(({ kind }) => isDoubt(kind));
    return this.doubt === 'settled' && !this.has('address-refused') && (code === 'upstream_blocked' || isDoubted);
  }

  /**
   * Adds what a client found. WEB is refused for its token: neither a refusal nor an empty text concerns the egress.
   *
   * @param request the kind of request that found it
   */
  add(
    client: YoutubeClient | null,
    kind: FindingKind,
    request: Doubt['kind'] = kind === 'text-refused' ? 'captions' : 'player',
  ): void {
    const ofToken = client === 'WEB' && isRefusalOfToken(kind);
    this.findings.push({ client, kind: ofToken ? 'token-required' : kind });
    if (!isDoubt(kind) || client === null || client === 'WEB') return;
    this.isAlone = this.scope.egress.uses.video.doubt(request, this.videoId, client);
    this.firstDoubt ??= { kind: request, client, sinceMs: performance.now() };
    if (this.doubt === 'none') this.doubt = 'new';
  }

  /** What a client said counts for nothing, because it is refused. */
  reject(client: YoutubeClient, kind: FindingKind): void {
    for (const finding of this.findings) if (finding.client === client) finding.kind = kind;
  }

  failure(code: FailedOutcome['failure']['code'], message?: string): FailedOutcome {
    const ofPlatform = code === 'upstream_blocked' && this.doubt !== 'settled' ? this.retryAfterSeconds : null;
    const retryAfterSeconds = code === 'upstream_busy' ? this.busyForSeconds : ofPlatform;
    const waiting = retryAfterSeconds !== null && { retryAfterSeconds };
    return {
      ok: false,
      details: this.details,
      failure: { code, ...(message !== undefined && { message }), ...waiting },
    };
  }

  /** The result when no client returned a final one. */
  conclude(): { result: FailedOutcome; end: AttemptEnd } {
    const { findings, end } = this;
    const code = concludeFailure(findings);
    // Whether the client that said so is served could not be found out.
    if (code === 'video_unavailable' && this.doubt !== 'settled')
      return { end, result: this.failure('upstream_failure') };
    // Fewer witnesses than are certain, or WEB was not available.
    if (code === 'video_unavailable' || code === 'transcript_unavailable')
      return { end, result: { ...this.failure(code), confirmed: false } };
    if (findings.length > 0 && findings.every(({ kind }) => kind === 'client-retired'))
      return { end, result: this.failure(code, ALL_CLIENTS_RETIRED) };
    if (this.has('too-long')) return { end, result: this.failure('upstream_failure', TOO_LONG) };
    // When several languages were requested, a withheld one does not hide that others are available.
    const readable = [...this.texts].flatMap(([key, segments]) => (segments.length > 0 ? key.split('\n', 1) : []));
    const message = `${VIDEO_FAILURES[code].message} Not all requested languages are available at the moment. Request ${readable.join(', ')} only.`;
    if (readable.length > 0) return { end, result: this.failure(code, message) };
    const isUnreached = code === 'upstream_failure' && findings.every(({ kind }) => kind === 'unreached');
    return { end, result: isUnreached ? this.failure(code, UNREACHED) : this.failure(code) };
  }

  private get end(): AttemptEnd {
    if (this.has('address-refused') || isRefused(this) || this.has('network-restricted')) return 'refused';
    if (this.has('busy')) return 'busy';
    const isUnreached = this.findings.some(({ kind }) => isOfEgress(kind));
    return this.doubt !== 'settled' && isUnreached ? 'unreached' : 'answered';
  }

  /** How each client ended that was asked, the last of which brought the outcome, if there is one. */
  results(outcome: VideoOutcome | null): ClientResult[] {
    const isRead = outcome?.ok === true;
    return this.asked.map((client, index) => {
      if (outcome && index === this.asked.length - 1) return { client, end: 'answered' };
      const found = this.findings.filter((finding) => finding.client === client).map(({ kind }) => kind);
      if (found.includes('client-retired')) return { client, end: 'retired' };
      return { client, end: found.some((kind) => isFailureOfClient(kind, isRead)) ? 'failed' : 'other' };
    });
  }

  has(kind: FindingKind): boolean {
    return this.findings.some((finding) => finding.kind === kind);
  }
}

function refusedKey(videoId: string, languages: readonly string[]): string {
  return [videoId, ...languages].join(' ');
}

function restrictedIn(country: string | null | undefined): string {
  const where = country ? ` (${country})` : '';
  return `This video is not available in the country from which this service reads YouTube${where}.`;
}

function describeTrack({ track }: PlayerTrack): string {
  return `${track.languageCode} (${track.generated ? 'generated' : 'manual'})`;
}

/** @param languages as for `selectTracks`; all of its elements are of one origin */
function missingTracks([element = '']: readonly string[]): string {
  const { tracks } = readElement(element);
  return `This video has no ${tracks === 'any' ? '' : `${tracks} `}captions in the requested languages.`;
}

/** Identifies a track across clients, whose URLs for it differ. */
function trackKey({ track }: Pick<PlayerTrack, 'track'>): string {
  return `${track.languageCode}\n${track.generated}\n${track.name}`;
}

function causeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
}
