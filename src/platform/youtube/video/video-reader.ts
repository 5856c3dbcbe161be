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
import { type CaptionText, fetchCaption } from '../captions/caption-fetch.js';
import {
  concludeFailure,
  type Evidence,
  evidenceOf,
  verdictOf,
  hasSeenTracks,
  isRefusal,
  isUnavailable,
  stepAfter,
  type ClientCandidate,
  ClientHealth,
} from './client-fallback.js';
import { report } from '../event-log.js';
import type { Admission } from '../egress/circuit-breaker.js';
import type { Attempt } from '../egress/proxy-failover.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient, type ParsedResponse } from '../innertube/innertube-client.js';
import { type PlayerAnswer, requestPlayer } from './player-requests.js';
import { type PlayerReading, mergeDetails } from './player-response.js';
import type { PlayerTrack } from './player-tracks.js';
import { RetiredClients } from './retired-clients.js';
import { selectTracks } from './track-selection.js';
import { UpstreamMetrics } from '../upstream-metrics.js';

const ALL_CLIENTS_RETIRED =
  'YouTube no longer serves the client versions that this service uses. Retry later; its operator is alerted.';

/** The state of one attempt over the clients. */
interface Pass {
  readonly videoId: string;
  readonly languages: readonly string[];
  readonly scope: RequestScope;
  readonly evidence: Evidence[];
  /** The clients that reported the video as unplayable or unavailable. */
  readonly unavailableOn: YoutubeClient[];
  /** Texts by track: a text that one client returned is not fetched again by the next. */
  readonly texts: Map<string, readonly Segment[]>;
  details: VideoDetails;
  succeeded: boolean;
  retryAfterSeconds: number | null;
}

/** Reads one video through one egress: client after client, until one returns the text or a final reason for having none. */
@Injectable()
export class VideoReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly clientHealth: ClientHealth,
    private readonly retiredClients: RetiredClients,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Rejects only when the scope's signal is aborted. */
  async read(videoId: string, languages: readonly string[], scope: RequestScope): Promise<Attempt<VideoOutcome>> {
    const pass: Pass = {
      ...{ videoId, languages, scope, evidence: [], unavailableOn: [], texts: new Map(), details: NO_DETAILS },
      ...{ succeeded: false, retryAfterSeconds: null },
    };
    for (const candidate of this.clientHealth.candidates(scope.egress)) {
      const outcome = await this.tryCandidate(candidate, pass);
      if (outcome) return { result: outcome, verdict: 'answered', retryAfterSeconds: null };
      if (pass.evidence.includes('egress-refused')) break;
      // A probe sends as little as possible. The next probe tries another client, because this one cools down then.
      if (scope.admission.probe && pass.evidence.some(isRefusal)) break;
    }
    return this.concludeFailure(pass);
  }

  private async tryCandidate({ client, admission }: ClientCandidate, pass: Pass): Promise<VideoOutcome | null> {
    const before = pass.evidence.length;
    const version = this.retiredClients.admit(client);
    try {
      if (!version) {
        pass.evidence.push('client-retired');
        return null;
      }
      // Checked for each client, because the deadline changes when a later caller joins.
      if (performance.now() >= pass.scope.context.deadlineAtMs) {
        pass.evidence.push('timeout');
        return null;
      }
      const outcome = await this.tryClient(client, version, pass);
      if (outcome) admission?.succeeded();
      else if (pass.evidence.slice(before).some(isRefusal)) admission?.blocked(pass.videoId);
      return outcome;
    } finally {
      admission?.abandoned();
      version?.abandoned();
    }
  }

  private async tryClient(client: YoutubeClient, version: Admission, pass: Pass): Promise<VideoOutcome | null> {
    const response = await this.requestPlayer(client, pass);
    const standing = versionStanding(response);
    if (standing === 'served') version.succeeded();
    if (standing === 'retired') version.blocked(pass.videoId);
    if (response.kind === 'parsed') return this.follow(client, response.value.reading, pass);
    if (response.kind === 'unparsable' || response.kind === 'unreadable')
      this.reportUnreadable(client, pass, response.expected);
    if (response.kind === 'blocked') pass.retryAfterSeconds ??= response.retryAfterSeconds;
    pass.evidence.push(response.kind === 'unparsable' ? 'failure' : evidenceOf(response));
    return null;
  }

  /** Requests the player response, once more with other visitor data when the platform refused this one. */
  private async requestPlayer(client: YoutubeClient, pass: Pass): Promise<ParsedResponse<PlayerAnswer>> {
    const { scope, videoId } = pass;
    const response = await requestPlayer(this.innertube, client, videoId, scope);
    if (response.kind !== 'parsed' || !SESSION_REFUSALS.has(response.value.reading.kind)) return response;
    const replaced = this.innertube.replaceVisitorData(scope.egress, client, response.value.visitor);
    // A probe sends as little as possible; the next one sends the new data.
    if (!replaced || scope.admission.probe) return response;
    this.metrics.notice('playability', client, response.value.reading.kind);
    return requestPlayer(this.innertube, client, videoId, scope);
  }

  private async follow(client: YoutubeClient, reading: PlayerReading, pass: Pass): Promise<VideoOutcome | null> {
    this.metrics.notice('playability', client, reading.kind);
    if ('details' in reading) {
      pass.details = mergeDetails(pass.details, reading.details);
      pass.succeeded = true;
    }
    if (reading.kind === 'tracks') return this.readTracks(client, reading, pass);
    if (reading.kind === 'unknown-status') {
      const { status, reason } = reading;
      report('warn', 'youtube_unknown_playability', { client, videoId: pass.videoId, status, reason });
    }
    const step = stepAfter(reading, pass.evidence);
    if (step.go === 'stop') return failure(pass, step.code);
    if (step.go === 'next') pass.evidence.push(step.evidence);
    if (reading.kind === 'unavailable' || reading.kind === 'unplayable') pass.unavailableOn.push(client);
    return isUnavailable(pass.unavailableOn, pass.evidence) ? failure(pass, 'video_unavailable') : null;
  }

  private async readTracks(
    client: YoutubeClient,
    reading: Extract<PlayerReading, { kind: 'tracks' }>,
    pass: Pass,
  ): Promise<VideoOutcome | null> {
    const selection = selectTracks(reading.tracks, reading.defaults, pass.languages);
    if ('none' in selection) {
      // An earlier client listed the tracks: their text is withheld, not missing.
      if (hasSeenTracks(pass.evidence)) return null;
      const message = `This video has no captions in the requested languages. Available: ${selection.available.join(', ')}.`;
      return failure(pass, selection.none, message);
    }
    const missing = selection.chosen.filter((chosen) => !pass.texts.has(trackKey(chosen)));
    await Promise.all(missing.map((chosen) => this.fetchTrack(client, chosen, pass)));
    // A withheld track is never replaced by one that was not requested: the next client may return all of them.
    if (selection.chosen.some((chosen) => !pass.texts.has(trackKey(chosen)))) return null;
    const texts = selection.chosen.map(
      (chosen) => [chosen.track.languageCode, pass.texts.get(trackKey(chosen)) ?? []] as const,
    );
    const transcript = new Map(texts.filter(([, segments]) => segments.length > 0));
    return transcript.size > 0
      ? { ok: true, details: pass.details, transcript }
      : failure(pass, 'transcript_unavailable', 'The captions of this video contain no text.');
  }

  private async fetchTrack(client: YoutubeClient, chosen: PlayerTrack, pass: Pass): Promise<void> {
    // The URL requires a PO token: a request would only return an empty body.
    if (chosen.needsToken) {
      pass.evidence.push('token-required');
      return;
    }
    const text: CaptionText = await fetchCaption(this.innertube, client, chosen, pass.videoId, pass.scope);
    if (text.kind === 'text') {
      pass.texts.set(trackKey(chosen), text.segments);
      return;
    }
    if (text.kind === 'unreadable') this.reportUnreadable(client, pass, text.expected);
    if (text.kind === 'blocked') pass.retryAfterSeconds ??= text.retryAfterSeconds;
    pass.evidence.push(text.kind === 'withheld' ? 'enforced' : evidenceOf(text));
  }

  private concludeFailure(pass: Pass): Attempt<VideoOutcome> {
    const { evidence, succeeded, texts, retryAfterSeconds } = pass;
    const code = concludeFailure(evidence);
    const attempt = { verdict: verdictOf(evidence, succeeded), retryAfterSeconds };
    // Two clients that agree end the attempt earlier.
    if (code === 'video_unavailable') return { ...attempt, result: { ...failure(pass, code), confirmed: false } };
    if (evidence.every((kind) => kind === 'client-retired'))
      return { ...attempt, result: failure(pass, code, ALL_CLIENTS_RETIRED) };
    // When several languages were requested, a withheld one does not hide that others are available.
    const readable = [...texts].filter(([, segments]) => segments.length > 0).map(([key]) => key.split('\n', 1)[0]);
    const message = `${VIDEO_FAILURES[code].message} Not all requested languages are available at the moment. Request ${readable.join(', ')} only.`;
    return { ...attempt, result: readable.length > 0 ? failure(pass, code, message) : failure(pass, code) };
  }

  private reportUnreadable(client: YoutubeClient, pass: Pass, expected: string): void {
    report('warn', 'youtube_unreadable', { client, videoId: pass.videoId, expected });
  }
}

/** The platform refuses the visitor data with which it was asked, or the caller altogether. */
const SESSION_REFUSALS: ReadonlySet<PlayerReading['kind']> = new Set(['bot-check', 'session-refused']);

/** Readings that a retired client does not get. Retired ones get `unavailable`, too. */
const SERVED: ReadonlySet<PlayerReading['kind']> = new Set([
  ...(['tracks', 'no-captions', 'private', 'members-only', 'age-restricted', 'live', 'upcoming'] as const),
]);

/** What a response says about the version of its client; null for nothing. */
function versionStanding(response: ParsedResponse<PlayerAnswer>): 'served' | 'retired' | null {
  if (response.kind === 'parsed') {
    const { kind } = response.value.reading;
    if (kind === 'client-retired') return 'retired';
    return SERVED.has(kind) ? 'served' : null;
  }
  // A JSON error of status 400 rejects the request itself, of which only the video differs between videos.
  return response.kind === 'http-error' && response.status === 400 && response.media === 'json' ? 'retired' : null;
}

/** Identifies a track across clients, whose URLs for it differ. */
function trackKey({ track }: PlayerTrack): string {
  return `${track.languageCode}\n${track.generated}\n${track.name}`;
}

function failure(pass: Pass, code: VideoFailureCode, message?: string): Extract<VideoOutcome, { ok: false }> {
  return { ok: false, details: pass.details, failure: message === undefined ? { code } : { code, message } };
}
