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
  stepAfter,
  type ClientCandidate,
  ClientHealth,
} from './client-fallback.js';
import { report } from '../event-log.js';
import type { Attempt } from '../egress/proxy-failover.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { requestPlayer } from './player-requests.js';
import { type PlayerReading, mergeDetails } from './player-response.js';
import type { PlayerTrack } from './player-tracks.js';
import { selectTracks } from './track-selection.js';
import { UpstreamMetrics } from '../upstream-metrics.js';

/** Bot checks of different clients after which a session of a gateway is given up. */
const SESSION_REFUSALS_MAX = 2;

/** The state of one attempt over the clients. */
interface Pass {
  readonly videoId: string;
  readonly languages: readonly string[];
  readonly scope: RequestScope;
  readonly evidence: Evidence[];
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
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Rejects only when the scope's signal is aborted. */
  async read(videoId: string, languages: readonly string[], scope: RequestScope): Promise<Attempt<VideoOutcome>> {
    const pass: Pass = {
      ...{ videoId, languages, scope, evidence: [], texts: new Map(), details: NO_DETAILS },
      ...{ succeeded: false, retryAfterSeconds: null },
    };
    for (const candidate of this.clientHealth.candidates(scope.egress)) {
      const outcome = await this.tryCandidate(candidate, pass);
      if (outcome) return { result: outcome, verdict: 'answered', retryAfterSeconds: null };
      if (pass.evidence.includes('egress-refused') || pass.evidence.includes('busy')) break;
      // Another session has another address, which is likelier to be served than the next client.
      if (scope.egress.gateway && pass.evidence.filter((kind) => kind === 'refused').length >= SESSION_REFUSALS_MAX)
        break;
      // A probe sends as little as possible. The next probe tries another client, because this one cools down then.
      if (scope.admission.probe && pass.evidence.some(isRefusal)) break;
    }
    return this.concludeFailure(pass);
  }

  private async tryCandidate({ client, admission }: ClientCandidate, pass: Pass): Promise<VideoOutcome | null> {
    const before = pass.evidence.length;
    try {
      // Checked for each client, because the deadline changes when a later caller joins.
      if (performance.now() >= pass.scope.context.deadlineAtMs) {
        pass.evidence.push('timeout');
        return null;
      }
      const outcome = await this.tryClient(client, pass);
      if (outcome) admission?.succeeded();
      else if (pass.evidence.slice(before).some(isRefusal)) admission?.blocked(pass.videoId);
      return outcome;
    } finally {
      admission?.abandoned();
    }
  }

  private async tryClient(client: YoutubeClient, pass: Pass): Promise<VideoOutcome | null> {
    const response = await requestPlayer(this.innertube, client, pass.videoId, pass.scope);
    if (response.kind === 'parsed') return this.follow(client, response.value, pass);
    if (response.kind === 'unparsable' || response.kind === 'unreadable')
      this.reportUnreadable(client, pass, response.expected);
    if (response.kind === 'blocked' || response.kind === 'busy') pass.retryAfterSeconds ??= response.retryAfterSeconds;
    pass.evidence.push(response.kind === 'unparsable' ? 'failure' : evidenceOf(response));
    return null;
  }

  private async follow(client: YoutubeClient, reading: PlayerReading, pass: Pass): Promise<VideoOutcome | null> {
    this.metrics.notice('playability', client, reading.kind);
    if ('details' in reading) {
      pass.details = mergeDetails(pass.details, reading.details);
      pass.succeeded = true;
    }
    if (reading.kind === 'tracks') return this.readTracks(client, reading, pass);
    if (reading.kind === 'bot-check') this.innertube.renewVisitorData(pass.scope.egress, client);
    if (reading.kind === 'unknown-status') {
      const { status, reason } = reading;
      report('warn', 'youtube_unknown_playability', { client, videoId: pass.videoId, status, reason });
    }
    const step = stepAfter(reading, pass.evidence);
    if (step.go === 'next') pass.evidence.push(step.evidence);
    return step.go === 'stop' ? failure(pass, step.code) : null;
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
    if (text.kind === 'blocked' || text.kind === 'busy') pass.retryAfterSeconds ??= text.retryAfterSeconds;
    pass.evidence.push(text.kind === 'withheld' ? 'enforced' : evidenceOf(text));
  }

  private concludeFailure(pass: Pass): Attempt<VideoOutcome> {
    const { evidence, succeeded, texts, retryAfterSeconds } = pass;
    const code = concludeFailure(evidence);
    // When several languages were requested, a withheld one does not hide that others are available.
    const readable = [...texts].filter(([, segments]) => segments.length > 0).map(([key]) => key.split('\n', 1)[0]);
    const message = `${VIDEO_FAILURES[code].message} Not all requested languages are available at the moment. Request ${readable.join(', ')} only.`;
    const result = readable.length > 0 ? failure(pass, code, message) : failure(pass, code);
    return { result, verdict: verdictOf(evidence, succeeded), retryAfterSeconds };
  }

  private reportUnreadable(client: YoutubeClient, pass: Pass, expected: string): void {
    report('warn', 'youtube_unreadable', { client, videoId: pass.videoId, expected });
  }
}

/** Identifies a track across clients, whose URLs for it differ. */
function trackKey({ track }: PlayerTrack): string {
  return `${track.languageCode}\n${track.generated}\n${track.name}`;
}

function failure(pass: Pass, code: VideoFailureCode, message?: string): VideoOutcome {
  const { details, retryAfterSeconds } = pass;
  const retryLater = (code === 'upstream_busy' || code === 'upstream_blocked') && retryAfterSeconds !== null;
  const failure = { code, ...(message !== undefined && { message }), ...(retryLater && { retryAfterSeconds }) };
  return { ok: false, details, failure };
}
