import { Injectable } from '@nestjs/common';
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
import type { Attempt } from '../egress/proxy-failover.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { WebProofs } from '../po-token/web-proofs.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import {
  concludeFailure,
  type Evidence,
  evidenceOf,
  type Finding,
  isRefusal,
  isUnavailable,
  stepAfter,
  verdictOf,
} from './client-fallback.js';
import { type ClientResult, ClientOrder } from './client-order.js';
import { type Candidate, requestPlayer } from './player-requests.js';
import { mergeDetails, type PlayerReading } from './player-response.js';
import { type PlayerTrack, selectTracks } from './player-tracks.js';

const ALL_CLIENTS_RETIRED =
  'YouTube no longer serves the client versions that this service uses. Retry later; its operator is alerted.';

/** Refusals of different clients after which an attempt is given up: they are likelier about the address than the clients. */
const REFUSALS_MAX = 2;

/** Reads one video through one egress: client after client, until one returns the text or a final reason for having none. */
@Injectable()
export class VideoReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly order: ClientOrder,
    private readonly webProofs: WebProofs,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Rejects only when the scope's signal is aborted. */
  async read(videoId: string, languages: readonly string[], scope: RequestScope): Promise<Attempt<VideoOutcome>> {
    const video = new VideoAttempt(videoId, languages, scope);
    // One client is asked in turn, and nothing confirms what it reports.
    if (this.order.allRetired) video.findings.push({ client: null, kind: 'client-retired' });
    const results: ClientResult[] = [];
    try {
      for (const client of this.order.candidates(scope.egress)) {
        if (video.isGivenUp) break;
        // Read for each client, because the deadline changes when a later caller joins.
        if (performance.now() >= scope.context.deadlineAtMs) {
          video.findings.push({ client: null, kind: 'timeout' });
          break;
        }
        const proof = client === 'WEB' ? await this.webProofs.get(videoId, scope) : null;
        // Skipped: whether the provider of tokens works does not change the outcome without WEB.
        if (client === 'WEB' && !proof) continue;
        const outcome = await this.ask({ client, proof }, video);
        const found = video.findings.filter((finding) => finding.client === client).map(({ kind }) => kind);
        if (proof && found.some(isRefusal)) this.webProofs.reject(videoId);
        results.push({ client, end: outcome ? 'answered' : endOf(found) });
        if (outcome) return { result: outcome, verdict: 'answered' };
      }
      return video.conclude();
    } finally {
      this.order.learn(scope.egress, videoId, results);
    }
  }

  /** Null when another client may return the text. */
  private async ask(candidate: Candidate, video: VideoAttempt): Promise<VideoOutcome | null> {
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
      video.addFailure(client, response);
      return null;
    }
    const reading = response.value;
    video.details = mergeDetails(video.details, reading.details);
    if (reading.kind === 'tracks') return this.readTracks(candidate, reading, video);
    const { kind, status, reason } = reading;
    if (kind === 'unknown-status') report('warn', 'youtube_unknown_playability', { client, videoId, status, reason });
    const { code, evidence } = stepAfter(kind, video.sawTracks);
    if (code !== undefined) {
      this.order.recordServed(client);
      return video.failure(code);
    }
    video.add(client, evidence);
    return isUnavailable(video, (each) => this.order.isServed(each)) ? video.failure('video_unavailable') : null;
  }

  private async readTracks(
    candidate: Candidate,
    { tracks, defaults }: Extract<PlayerReading, { kind: 'tracks' }>,
    video: VideoAttempt,
  ): Promise<VideoOutcome | null> {
    this.order.recordServed(candidate.client);
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

  private async fetchTrack({ client, proof }: Candidate, track: PlayerTrack, video: VideoAttempt): Promise<void> {
    // The URL requires a PO token: a request would only return an empty body.
    if (track.needsToken && !proof) return video.add(client, 'token-required');
    const { videoId, scope } = video;
    const text = await fetchCaption(this.innertube, client, track, videoId, scope, proof?.poToken);
    if (text.kind === 'text') video.texts.set(trackKey(track), text.segments);
    else if (text.kind === 'withheld') video.add(client, 'enforced');
    else video.addFailure(client, text);
  }
}

/** What one attempt at a video has found so far. */
class VideoAttempt {
  readonly findings: Finding[] = [];
  /** Texts by track: a text that one client returned is not fetched again by the next. */
  readonly texts = new Map<string, readonly Segment[]>();
  details: VideoDetails = NO_DETAILS;
  /** A client listed tracks in the requested languages, which proves that the video has captions. */
  sawTracks = false;
  /** The platform's. */
  private retryAfterSeconds: number | null = null;
  /** When the egress can serve. */
  private busyForSeconds: number | null = null;

  constructor(
    readonly videoId: string,
    readonly languages: readonly string[],
    readonly scope: RequestScope,
  ) {}

  private get evidence(): Evidence[] {
    return this.findings.map(({ kind }) => kind);
  }

  /** Whether further clients would be refused, too. */
  get isGivenUp(): boolean {
    const { evidence } = this;
    if (evidence.includes('egress-refused') || evidence.includes('busy')) return true;
    return evidence.filter((kind) => kind === 'refused').length >= REFUSALS_MAX;
  }

  /** WEB is refused for its token: neither a refusal nor an empty text concerns the egress. */
  add(client: YoutubeClient, kind: Evidence): void {
    const ofToken = client === 'WEB' && (kind === 'refused' || kind === 'enforced');
    this.findings.push({ client, kind: ofToken ? 'token-required' : kind });
  }

  /** Adds what a request without a readable response says about its client. */
  addFailure(
    client: YoutubeClient,
    response: Exclude<ParsedResponse<unknown>, { kind: 'parsed' }> | FailedResponse,
  ): void {
    if ('expected' in response)
      report('warn', 'youtube_unreadable', { client, videoId: this.videoId, expected: response.expected });
    if (response.kind === 'blocked') this.retryAfterSeconds ??= response.retryAfterSeconds;
    if (response.kind === 'busy') this.busyForSeconds = response.retryAfterSeconds;
    this.add(client, evidenceOf(response));
  }

  failure(code: VideoFailureCode, message?: string): Extract<VideoOutcome, { ok: false }> {
    const ofPlatform = code === 'upstream_blocked' ? this.retryAfterSeconds : null;
    const retryAfterSeconds = code === 'upstream_busy' ? this.busyForSeconds : ofPlatform;
    const waiting = retryAfterSeconds !== null && { retryAfterSeconds };
    return {
      ok: false,
      details: this.details,
      failure: { code, ...(message !== undefined && { message }), ...waiting },
    };
  }

  /** The result when no client returned a final one. */
  conclude(): Attempt<VideoOutcome> {
    const { evidence } = this;
    const code = concludeFailure(evidence);
    const attempt = { verdict: verdictOf(evidence, this.sawTracks) };
    // Two clients that agree for certain end the attempt earlier.
    if (code === 'video_unavailable') return { ...attempt, result: { ...this.failure(code), confirmed: false } };
    if (evidence.length > 0 && evidence.every((kind) => kind === 'client-retired'))
      return { ...attempt, result: this.failure(code, ALL_CLIENTS_RETIRED) };
    // When several languages were requested, a withheld one does not hide that others are available.
    const readable = [...this.texts].flatMap(([key, segments]) => (segments.length > 0 ? key.split('\n', 1) : []));
    const message = `${VIDEO_FAILURES[code].message} Not all requested languages are available at the moment. Request ${readable.join(', ')} only.`;
    return { ...attempt, result: readable.length > 0 ? this.failure(code, message) : this.failure(code) };
  }
}

/** How a client that did not answer ended. */
function endOf(evidence: readonly Evidence[]): ClientResult['end'] {
  if (evidence.includes('client-retired')) return 'retired';
  if (evidence.includes('refused')) return 'refused';
  return evidence.some(isRefusal) ? 'withheld' : 'other';
}

/** Identifies a track across clients, whose URLs for it differ. */
function trackKey({ track }: PlayerTrack): string {
  return `${track.languageCode}\n${track.generated}\n${track.name}`;
}
