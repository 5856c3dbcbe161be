import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { YoutubeClient } from '../../../config/environment.js';
import {
  NO_DETAILS,
  type Segment,
  VIDEO_FAILURES,
  type VideoDetails,
  type VideoFailureCode,
  type VideoOutcome,
} from '../../../domain/transcript.js';
import { fetchCaption } from '../captions/caption-fetch.js';
import type { AttemptEnd } from '../egress/attempt.js';
import type { AttemptResult } from '../egress/egress-failover.js';
import type { Doubt, Verdict } from '../egress/egress-use.js';
import { Experiment } from '../egress/experiment.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { type FailedResponse, UNREACHED } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { WebProofs } from '../po-token/web-proofs.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import {
  concludeFailure,
  doubtingApps,
  findingOf,
  type FindingKind,
  isDoubt,
  isOfEgress,
  isRefusal,
  isUnavailability,
  nextClient,
  stepAfter,
  unavailableAccordingTo,
  type VideoFinding,
} from './client-fallback.js';
import { type ClientResult, ClientOrder } from './client-order.js';
import { ControlVideos } from './control-videos.js';
import { type Candidate, requestPlayer } from './player-requests.js';
import { mergeDetails, type PlayerReading } from './player-response.js';
import { type PlayerTrack, selectTracks } from './player-tracks.js';

const ALL_CLIENTS_RETIRED =
  'YouTube no longer serves the client versions that this service uses. Retry later; its operator is alerted.';

/** A client's word is final for so long after it was served. */
const TRUSTED_MS = 60_000;
/** The word of the clients that play videos made for kids, which are rarely the first, for so long. */
const TRUSTED_VERSION_MS = 3_600_000;
/** The sessions of a gateway judge a video one by one; after so many, the control is asked too. */
const SESSIONS_BEFORE_CONTROL = 3;

const REFUSED_MS = 600_000;
const REFUSED_MAX = 10_000;

type FailedOutcome = Extract<VideoOutcome, { ok: false }>;

/**
 * Reads one video through one egress: client after client, until one returns the text or a final reason for having none. A
 * refusal, or a word that could be one, is examined (`Experiment`) before it is reported as a fact or affects anybody else.
 */
@Injectable()
export class VideoReader {
  /** The videos that the platform refuses while it serves others: to ask again would cost everybody requests. */
  private readonly refused = new LRUCache<string, FailedOutcome>({
    max: REFUSED_MAX,
    ttl: REFUSED_MS,
    ttlResolution: 0,
  });

  constructor(
    private readonly innertube: InnertubeClient,
    private readonly order: ClientOrder,
    private readonly webProofs: WebProofs,
    private readonly controls: ControlVideos,
    private readonly experiment: Experiment,
    private readonly metrics: UpstreamMetrics,
  ) {}

  remembered(videoId: string, languages: readonly string[]): VideoOutcome | undefined {
    return this.refused.get(refusedKey(videoId, languages));
  }

  /** Rejects only when the scope's signal is aborted. */
  async read(videoId: string, languages: readonly string[], scope: RequestScope): Promise<AttemptResult<VideoOutcome>> {
    const remaining = this.order.candidates(scope.egress);
    const video = new VideoReading(videoId, languages, scope, remaining);
    // One client is asked in turn, and nothing confirms what it reports.
    if (this.order.allRetired) video.findings.push({ client: null, kind: 'client-retired' });
    const results: ClientResult[] = [];
    try {
      while (!video.isGivenUp) {
        const client = nextClient(remaining, video.findings);
        if (client === undefined) break;
        remaining.splice(remaining.indexOf(client), 1);
        // Read for each client, because the deadline changes when a later caller joins.
        if (performance.now() >= scope.context.deadlineAtMs) {
          video.findings.push({ client: null, kind: 'timeout' });
          break;
        }
        const proof = client === 'WEB' ? await this.webProofs.get(videoId, scope) : null;
        // Skipped: whether the provider of tokens works does not change the outcome without WEB.
        if (client === 'WEB' && !proof) continue;
        const outcome = await this.tryClient({ client, proof }, video);
        const found = video.findings.filter((finding) => finding.client === client).map(({ kind }) => kind);
        if (proof && found.some(isRefusal)) this.webProofs.reject(videoId);
        results.push({ client, end: outcome ? 'answered' : endOf(found) });
        if (outcome) return { result: outcome, end: 'answered' };
      }
      return await this.conclude(video);
    } finally {
      this.order.learn(scope.egress, videoId, results);
    }
  }

  /** Null when another client may return the text. */
  private async tryClient(candidate: Candidate, video: VideoReading): Promise<VideoOutcome | null> {
    const { client } = candidate;
    const { videoId, scope } = video;
    const response = await requestPlayer(this.innertube, candidate, videoId, scope, ({ kind }) =>
      this.metrics.notice('playability', client, kind),
    );
    // A JSON error of status 400 rejects the request itself, of which only the video differs between videos.
    if (response.kind === 'http-error' && response.status === 400 && response.media === 'json') {
      video.add(client, 'client-retired');
      return null;
    }
    if (response.kind !== 'parsed') {
      await this.addFailure(candidate, 'player', response, video);
      return null;
    }
    const reading = response.value;
    video.details = mergeDetails(video.details, reading.details);
    if (reading.kind === 'tracks') return this.readTracks(candidate, reading, video);
    const { kind, status, reason } = reading;
    if (kind === 'unknown-status') report('warn', 'youtube_unknown_playability', { client, videoId, status, reason });
    const { code, finding } = stepAfter(kind, video.sawTracks);
    if (code !== undefined) return this.confirm(client, code, video);
    await this.add(client, finding, 'player', video);
    // A client that listed tracks proves that the video is available.
    const witness = video.sawTracks || video.undecided ? null : unavailableAccordingTo(video.findings, video.remaining);
    return witness ? this.confirmUnavailable(witness, video) : null;
  }

  /** A fact about the video, if the client that states it is served at this egress. */
  private async confirm(
    client: YoutubeClient,
    code: VideoFailureCode,
    video: VideoReading,
  ): Promise<VideoOutcome | null> {
    if (code === 'transcript_unavailable' && client !== 'WEB' && video.remaining.includes('WEB')) {
      // Apps are not shown manual tracks with styling.
      video.add(client, 'no-captions');
      return null;
    }
    const { egress } = video.scope;
    // WEB is refused for its token only.
    const isTrusted = client === 'WEB' || this.order.isServed(egress, client, TRUSTED_MS);
    const doubt: Doubt = { kind: 'player', client, sinceMs: performance.now() - TRUSTED_MS };
    const verdict = isTrusted ? 'served' : await this.experiment.settle(doubt, client, video.scope);
    if (verdict === 'address-refused') video.add(null, verdict);
    else if (verdict === 'client-refused') video.add(client, 'refused');
    else {
      egress.uses.video.line.answered('player');
      // The control could not be asked: no other word is known, and this one is specific.
      return verdict === 'served' ? video.failure(code) : { ...video.failure(code), confirmed: false };
    }
    return null;
  }

  /** @param witness whose word decides */
  private async confirmUnavailable(witness: YoutubeClient, video: VideoReading): Promise<VideoOutcome | null> {
    const isTrusted = this.order.isVersionServed(witness, TRUSTED_VERSION_MS);
    const verdict = await this.settle(video, isTrusted ? null : witness);
    if (verdict !== 'client-refused') return verdict === 'served' ? video.failure('video_unavailable') : null;
    video.discard(witness);
    return null;
  }

  /** Adds what a client found, and examines a doubt when it could be about more than this video. */
  private async add(
    client: YoutubeClient,
    kind: FindingKind,
    budget: Doubt['kind'],
    video: VideoReading,
  ): Promise<void> {
    video.add(client, kind);
    // WEB is refused for its token: neither a refusal nor an empty text concerns the egress.
    if (!isDoubt(kind) || client === 'WEB') return;
    const { egress, attempts } = video.scope;
    const isAlone = egress.uses.video.doubt(budget, video.videoId, client);
    video.doubt ??= { kind: budget, client, sinceMs: performance.now() };
    if (video.settled) return;
    const isRefusedTwice = !isUnavailability(kind) && doubtingApps(video.findings) >= 2;
    if (egress.gateway ? isRefusedTwice && attempts >= SESSIONS_BEFORE_CONTROL : isRefusedTwice || !isAlone)
      await this.settle(video, null);
  }

  /** Finds out whether the video is at fault: then what its clients found is about it. @param client null for any */
  private async settle(video: VideoReading, client: YoutubeClient | null): Promise<Verdict | null> {
    const { doubt } = video;
    if (!doubt) return null;
    const asked = client ?? doubt.client;
    const verdict = await this.experiment.settle({ ...doubt, client }, asked, video.scope);
    if (verdict === 'address-refused') video.add(null, verdict);
    else if (verdict === 'unknown') video.undecided = true;
    // Another client was served, so that the address is not refused.
    else video.settled = true;
    return verdict;
  }

  /** The result when no client returned a final one. */
  private async conclude(video: VideoReading): Promise<AttemptResult<VideoOutcome>> {
    const isSession = video.scope.egress.gateway !== undefined && video.isRefused;
    if (video.doubt && !video.settled && !video.isOfAddress && !isSession) await this.settle(video, null);
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
    { tracks, defaults }: Extract<PlayerReading, { kind: 'tracks' }>,
    video: VideoReading,
  ): Promise<VideoOutcome | null> {
    this.controls.recordServed(video.scope, candidate.client, video.videoId, 'player');
    const chosen = selectTracks(tracks, defaults, video.languages);
    if (chosen.length === 0) {
      // An earlier client listed the tracks: their text is withheld, not missing.
      if (video.sawTracks) return null;
      const available = [...new Set(tracks.map(({ track }) => track.languageCode))].join(', ');
      const message = `This video has no captions in the requested languages. Available: ${available}.`;
      return video.failure('language_unavailable', message);
    }
    video.sawTracks = true;
    const missing = chosen.filter((track) => !video.texts.has(trackKey(track)));
    await Promise.all(missing.map((track) => this.fetchTrack(candidate, track, video)));
    // A withheld track is never replaced by one that was not requested: the next client may return all of them.
    if (chosen.some((track) => !video.texts.has(trackKey(track)))) return null;
    const texts = chosen.map((each) => [each.track.languageCode, video.texts.get(trackKey(each)) ?? []] as const);
    const transcript = new Map(texts.filter(([, segments]) => segments.length > 0));
    return transcript.size > 0
      ? { ok: true, details: video.details, transcript }
      : video.failure('transcript_unavailable', 'The captions of this video contain no text.');
  }

  private async fetchTrack(candidate: Candidate, track: PlayerTrack, video: VideoReading): Promise<void> {
    const { client, proof } = candidate;
    // The URL requires a PO token: a request would only return an empty body.
    if (track.needsToken && !proof) return video.add(client, 'token-required');
    const { videoId, scope } = video;
    const text = await fetchCaption(this.innertube, client, track, videoId, scope, proof?.poToken);
    if (text.kind === 'text') {
      video.texts.set(trackKey(track), text.segments);
      this.controls.recordServed(scope, client, videoId, 'captions');
    } else if (text.kind === 'withheld') await this.add(client, 'text-refused', 'captions', video);
    else await this.addFailure(candidate, 'text', text, video);
  }

  /** Adds what a request without a readable response says about its client. */
  private async addFailure(
    { client }: Candidate,
    what: 'player' | 'text',
    response: Exclude<ParsedResponse<unknown>, { kind: 'parsed' }> | FailedResponse,
    video: VideoReading,
  ): Promise<void> {
    const { videoId, scope } = video;
    if ('expected' in response) report('warn', 'youtube_unreadable', { client, videoId, expected: response.expected });
    if (response.kind === 'network')
      report('warn', 'youtube_unreached', { exit: scope.egress.name, videoId, cause: causeOf(response.cause) });
    if (response.kind === 'blocked') video.retryAfterSeconds ??= response.retryAfterSeconds;
    if (response.kind === 'busy') video.busyForSeconds = response.retryAfterSeconds;
    await this.add(client, findingOf(response, what), what === 'text' ? 'captions' : 'player', video);
  }
}

/** What one attempt at a video has found so far. */
class VideoReading {
  readonly findings: VideoFinding[] = [];
  /** Texts by track: a text that one client returned is not fetched again by the next. */
  readonly texts = new Map<string, readonly Segment[]>();
  details: VideoDetails = NO_DETAILS;
  /** A client listed tracks in the requested languages, which proves that the video has captions. */
  sawTracks = false;
  /** The first doubt, by the client that raised it. */
  doubt: (Doubt & { client: YoutubeClient }) | null = null;
  /** The address was served after the doubt: what the clients found is about the video. */
  settled = false;
  /** A control could not be asked: it is asked once more at the end, and not for each further client. */
  undecided = false;
  /** The platform's. */
  retryAfterSeconds: number | null = null;
  /** When the egress can serve. */
  busyForSeconds: number | null = null;

  /** @param remaining the clients that were not asked yet; the reader removes them */
  constructor(
    readonly videoId: string,
    readonly languages: readonly string[],
    readonly scope: RequestScope,
    readonly remaining: readonly YoutubeClient[],
  ) {}

  get isOfAddress(): boolean {
    return this.has((kind) => kind === 'address-refused');
  }

  /** Whether a client was refused, and it is not known to be the video's fault. */
  get isRefused(): boolean {
    return !this.settled && this.findings.some(({ kind }) => isDoubt(kind) && !isUnavailability(kind));
  }

  /** Whether the platform refuses the video while it serves others; a failure that may pass is no refusal. */
  get isRefusedItself(): boolean {
    const code = concludeFailure(this.findings);
    const isDoubted = code === 'upstream_failure' && this.findings.every(({ kind }) => isDoubt(kind));
    return this.settled && !this.isOfAddress && (code === 'upstream_blocked' || isDoubted);
  }

  /** Whether further clients would end alike, or another egress is better. */
  get isGivenUp(): boolean {
    if (this.isOfAddress || this.has((kind) => kind === 'busy')) return true;
    if (this.scope.hasAlternative && this.has(isOfEgress)) return true;
    return this.isRefused && doubtingApps(this.findings) >= 2;
  }

  /** WEB is refused for its token. */
  add(client: YoutubeClient | null, kind: FindingKind): void {
    const ofToken = client === 'WEB' && (kind === 'refused' || kind === 'text-refused');
    this.findings.push({ client, kind: ofToken ? 'token-required' : kind });
  }

  /** The platform refuses a client: what it said about the video counts for nothing. */
  discard(client: YoutubeClient): void {
    for (const finding of this.findings) if (finding.client === client) finding.kind = 'client-retired';
  }

  failure(code: VideoFailureCode, message?: string): FailedOutcome {
    const ofPlatform = code === 'upstream_blocked' && !this.settled ? this.retryAfterSeconds : null;
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
    if (code === 'video_unavailable' && !this.settled) return { end, result: this.failure('upstream_failure') };
    // Fewer witnesses than are certain, or WEB was not available.
    if (code === 'video_unavailable' || code === 'transcript_unavailable')
      return { end, result: { ...this.failure(code), confirmed: false } };
    if (findings.length > 0 && findings.every(({ kind }) => kind === 'client-retired'))
      return { end, result: this.failure(code, ALL_CLIENTS_RETIRED) };
    // When several languages were requested, a withheld one does not hide that others are available.
    const readable = [...this.texts].flatMap(([key, segments]) => (segments.length > 0 ? key.split('\n', 1) : []));
    const message = `${VIDEO_FAILURES[code].message} Not all requested languages are available at the moment. Request ${readable.join(', ')} only.`;
    if (readable.length > 0) return { end, result: this.failure(code, message) };
    const isUnreached = code === 'upstream_failure' && findings.every(({ kind }) => kind === 'unreached');
    return { end, result: isUnreached ? this.failure(code, UNREACHED) : this.failure(code) };
  }

  private get end(): AttemptEnd {
    if (this.isOfAddress || this.isRefused || this.has((kind) => kind === 'network-restricted')) return 'refused';
    if (this.has((kind) => kind === 'busy')) return 'busy';
    return !this.settled && this.has(isOfEgress) ? 'unreached' : 'answered';
  }

  private has(matches: (kind: FindingKind) => boolean): boolean {
    return this.findings.some(({ kind }) => matches(kind));
  }
}

function refusedKey(videoId: string, languages: readonly string[]): string {
  return [videoId, ...languages].join(' ');
}

/** How a client that did not answer ended. */
function endOf(found: readonly FindingKind[]): ClientResult['end'] {
  if (found.includes('client-retired')) return 'retired';
  const isFailed = (kind: FindingKind) =>
    kind === 'failure' || isOfEgress(kind) || (isDoubt(kind) && !isUnavailability(kind));
  return found.some(isFailed) ? 'failed' : 'other';
}

/** Identifies a track across clients, whose URLs for it differ. */
function trackKey({ track }: PlayerTrack): string {
  return `${track.languageCode}\n${track.generated}\n${track.name}`;
}

function causeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
}
